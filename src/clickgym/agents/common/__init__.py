"""What several families of agents share: base classes and kernels."""
