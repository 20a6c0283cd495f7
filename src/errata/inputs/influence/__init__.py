"""Influence embeddings (InfEmbed): which training rows a prediction owes its loss to, as a representation."""
