"""Trees of rigid and flexible bodies: the recursions that run in a tick, and their Python face `Tree` and `FlexibleTree`.

May import `rt_kernels.algebra`, and `rt_kernels.model` for what is prepared before the first tick.
"""

from rt_kernels.model.bodies import Body, ModelError
from rt_kernels.multibody.tree import Tree

__all__ = ["Body", "ModelError", "Tree"]
