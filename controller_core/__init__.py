"""The controller: pure decisions over columns (model, cluster) and the shell that carries them out."""
