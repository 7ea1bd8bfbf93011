"""No mechanism: a provider ranks exact scores, and draws no values."""

from rag_audit.retrieval.serving.base import Ranking

SERVING = Ranking
