"""BERT encoders in integer arithmetic: all machines compute the same vector (docs/minilm-int.md).

- `semantics`: constants, shapes, scales and tables; Python integers only
- `reference`: the forward pass in Python integers, the definition of every other implementation's results
- `files`: from a model's folder to integers
- `embedder`: the embedders `minilm-int`, `minilm-int-lexical` and `bert-int`; they compute by the native core
"""
