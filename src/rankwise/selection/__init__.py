"""Selection of alpha and iterations: the cv plan, the surface, exact hold-out, the path, and the result."""
