"""Process-level services: threads, memory limits, matrix decompositions and progress lines."""
