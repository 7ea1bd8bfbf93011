"""A language model in this process: its file, its chat template, and what attacks compute from its probabilities."""
