"""Trees of rigid and flexible bodies."""

from rt_kernels.multibody.tree import Tree
from rt_kernels.multibody.tree_model import Body, ModelError

__all__ = ["Body", "ModelError", "Tree"]
