"""No mechanism: a provider ranks exact scores, and draws nothing."""

from rag_audit.retrieval.serving.base import Ranking

SERVING = Ranking
