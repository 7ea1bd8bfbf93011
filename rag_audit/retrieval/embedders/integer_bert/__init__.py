"""BERT encoders in integer arithmetic: all machines compute the same vector (docs/minilm-int.md).

- `semantics`: constants, shapes, scales and tables; Python integers only
- `reference`: the forward pass in Python integers, the definition of every other implementation's results
- `files`: from a model's folder to integers
- `installed`: the folder of the published files, if a package with them is installed
- `embedder`, `lexical`: an encoder as embedder, without and with lexical components, by the native core
- `proved`: an encoder as the source of proofs of claim A1
- `published`: pins, score windows and artefacts, which policies and verifiers need without files
- `registry`: `minilm-int`, `minilm-int-lexical-768` and `bert-int` by name
"""
