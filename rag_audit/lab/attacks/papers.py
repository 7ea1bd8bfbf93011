"""The papers' own figures, as their tables print them, by the corpus and attack that stand for them here.

A corpus here is not a paper's: medical dialogue stands for HealthCareMagic-100k, SQuAD passages for MS MARCO and
NQ-simplified, travel dialogue for Reddit-travel, MedQuAD for NFCorpus, SciFact for SCIDOCS, PubMedQA for TREC-COVID.
"""

from __future__ import annotations

CORPORA = {
    "mts": ("medical dialogue (MTS-Dialog)", "HealthCareMagic-100k"),
    "squad": ("SQuAD passages", "MS MARCO; NQ-simplified"),
    "travel": ("travel dialogue (SGD)", "Reddit-travel"),
    "medquad": ("medical answers (MedQuAD)", "NFCorpus"),
    "scifact": ("abstracts (SciFact)", "SCIDOCS"),
    "pubmedqa": ("abstracts (PubMedQA)", "TREC-COVID"),
}
MASKS_1 = {
    "mts": {"min-k": (0.65, 0.38, 0.60, 0.75, 0.75, 0.75), "rag-mia": (0.93, 0.49, 0.75, 0.80, 0.91, 0.86),
            "s2mia-s": (0.62, 0.46, 0.77, 0.79, 0.96, 0.87), "s2mia-m": (0.62, 0.57, 0.78, 0.85, 0.92, 0.89),
            "mba": (0.87, 0.88, 0.85, 0.97, 0.81, 0.89)},
    "squad": {"min-k": (0.81, 0.65, 0.58, 0.79, 0.68, 0.73), "rag-mia": (0.97, 0.52, 0.79, 0.82, 0.95, 0.88),
              "s2mia-s": (0.81, 0.67, 0.64, 0.89, 0.64, 0.74), "s2mia-m": (0.81, 0.68, 0.66, 0.87, 0.68, 0.76),
              "mba": (0.98, 0.90, 0.85, 0.90, 0.91, 0.90)},
}  # fmt: skip
"""Table 1 of the paper on masks, GPT-4o-mini: retrieval recall, AUC, accuracy, precision, recall, F1. For `squad` its
NQ-simplified."""
MASKS_2 = {
    "mts": {
        "mba-random": (0.88, 0.68),
        "mba-plm": (0.85, 0.74),
        "mba-nosc": (0.87, 0.85),
        "mba": (0.87, 0.88),
    },
    "squad": {
        "mba-random": (0.96, 0.75),
        "mba-plm": (0.97, 0.69),
        "mba-nosc": (0.99, 0.84),
        "mba": (0.98, 0.90),
    },
}
"""Its table 2: retrieval recall and AUC."""
SHADOW_1 = {
    "mts": {"rag-mia": (0.743, 0.742, 0.789), "s2mia-t": (0.451, 0.451, 0.567), "s2mia-m": (0.518, 0.522, 0.530),
            "mba": (0.948, 0.661, 0.487), "s-rag": (0.983, 0.941, 0.942)},
    "travel": {"rag-mia": (0.741, 0.741, 0.738), "s2mia-t": (0.671, 0.671, 0.575), "s2mia-m": (0.911, 0.761, 0.707),
               "mba": (0.893, 0.688, 0.545), "s-rag": (0.942, 0.862, 0.852)},
}  # fmt: skip
"""Table 1 of the paper on shadow services, Llama 3: AUC, accuracy, F1."""
SHADOW_2 = {
    "mts": {"rag-mia": (0.743, 0.498, 0.496), "s2mia-t": (0.451, 0.468, 0.488), "s2mia-m": (0.518, 0.508, 0.585),
            "mba": (0.948, 0.823, 0.787), "s-rag": (0.983, 0.946, 0.919)},
    "travel": {"rag-mia": (0.741, 0.550, 0.539), "s2mia-t": (0.671, 0.599, 0.504), "s2mia-m": (0.911, 0.626, 0.577),
               "mba": (0.893, 0.815, 0.719), "s-rag": (0.942, 0.918, 0.796)},
}  # fmt: skip
"""Its table 2: AUC without defence, with another prompt, with paraphrase."""
MIRABEL_2 = {
    "medquad": {"s2mia-t": (0.844, 0.865, 0.762, 1.000), "mba-random": (0.847, 0.867, 0.766, 1.000),
                "ia": (0.799, 0.750, 0.896, 0.817)},
    "scifact": {"s2mia-t": (0.853, 0.871, 0.776, 0.992), "mba-random": (0.855, 0.873, 0.775, 1.000),
                "ia": (0.827, 0.772, 0.928, 0.843)},
    "pubmedqa": {"s2mia-t": (0.880, 0.886, 0.846, 0.930), "mba-random": (0.995, 0.995, 1.000, 0.990),
                 "ia": (0.720, 0.744, 0.670, 0.705)},
}  # fmt: skip
"""Table 2 of the paper on Mirabel: accuracy, F1, precision, recall of detection."""
MIRABEL_3 = {"none": (0.272, 0.222), "mirabel": (0.253, 0.172)}
"""Its table 3, Natural Questions at 5 passages: exact match and recall, without and with Mirabel."""
MIRABEL_45 = {
    "medquad": {"s2mia-t": ((0.188, 0.024), (0.358, 0.057)), "mba-random": ((0.377, 0.019), (0.754, 0.038)),
                "ia": ((0.403, 0.008), (0.805, 0.100))},
    "scifact": {"s2mia-t": ((0.126, 0.006), (0.195, 0.039)), "mba-random": ((0.406, 0.101), (0.813, 0.202)),
                "ia": ((0.380, 0.010), (0.771, 0.081))},
    "pubmedqa": {"s2mia-t": ((0.119, 0.021), (0.203, 0.043)), "mba-random": ((0.313, 0.139), (0.625, 0.283)),
                 "ia": ((0.254, 0.083), (0.555, 0.172))},
}  # fmt: skip
"""Its tables 4 and 5: adjusted accuracy and KS distance, each without and with Mirabel."""
MIRABEL_6 = {
    "medquad": {"s2mia-t": ((0.021, 0.020), (0.077, 0.088)), "mba-random": ((0.015, 0.010), (0.022, 0.058)),
                "ia": ((0.004, 0.004), (0.088, 0.046))},
    "scifact": {"s2mia-t": ((0.004, 0.029), (0.051, 0.028)), "mba-random": ((0.040, 0.015), (0.081, 0.040)),
                "ia": ((0.003, 0.018), (0.418, 0.075))},
    "pubmedqa": {"s2mia-t": ((0.038, 0.024), (0.038, 0.050)), "mba-random": ((0.288, 0.004), (0.015, 0.035)),
                 "ia": ((0.174, 0.064), (0.091, 0.094))},
}  # fmt: skip
"""Its table 6, the noise being DP-RAG's at eps 2: adjusted accuracy and KS distance, each with noise and with both."""
MIRABEL_7 = {"noise": 0.030, "both": 0.020}
"""Its table 7, Natural Questions at 5 passages: exact match with noise, and with both."""
MIRABEL_12 = {
    "medquad": {"s2mia-s": (0.378, 0.064, 0.056), "s2mia-p": (0.338, 0.050, 0.098)},
    "scifact": {"s2mia-s": (0.254, 0.024, 0.051), "s2mia-p": (0.137, 0.053, 0.050)},
    "pubmedqa": {"s2mia-s": (0.239, 0.048, 0.041), "s2mia-p": (0.167, 0.038, 0.034)},
}
"""Its table 12: KS distance of similarity and of perplexity, without defence, with Mirabel, with noise."""
