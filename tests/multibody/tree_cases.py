"""Random trees, and the same trees in Pinocchio."""

import numpy as np
import pinocchio as pin

from rt_kernels.multibody import Body

KINDS = ["revolute", "revolute", "revolute", "prismatic", "screw", "spherical", "planar", "free", "continuous", "universal"]
CIRCLE = {(1, 0, 0): pin.JointModelRUBX, (0, 1, 0): pin.JointModelRUBY, (0, 0, 1): pin.JointModelRUBZ}


def relative(found, expected):
    return np.linalg.norm(np.asarray(found) - expected) / np.linalg.norm(expected)


def rotation(rng):
    x, y, z, w = rng.normal(size=4)
    return pin.Quaternion(w, x, y, z).normalized().matrix()


def random_body(rng, i, parent, joint, motors=True):
    mass = rng.uniform(0.5, 5.0)
    d, R = rng.uniform(0.1, 1.0, 3), rotation(rng)
    inertia = R @ np.diag([d[1] + d[2], d[0] + d[2], d[0] + d[1]]) @ R.T * 0.1 * mass
    axis = np.eye(3)[rng.integers(3)] if joint == "continuous" else rng.normal(size=3)
    return Body(
        f"b{i}", parent, joint, f"j{i}", rotation(rng), rng.uniform(-0.5, 0.5, 3), axis, rng.normal(size=3), rng.uniform(-0.3, 0.3),
        mass, rng.uniform(-0.3, 0.3, 3), (inertia + inertia.T) / 2,
        rotor_inertia=0.0 if joint == "free" or not motors else rng.uniform(0.0, 0.01), gear_ratio=rng.uniform(1.0, 5.0),
    )  # fmt: skip


def depth_first(bodies):
    children = {}
    for b in bodies:
        children.setdefault(b.parent, []).append(b)
    out, stack = [], children[None][::-1]
    while stack:
        out.append(stack.pop())
        stack.extend(children.get(out[-1].name, [])[::-1])
    return out


def random_tree(rng, n, floating, chain=1.0, kinds=KINDS, motors=True):
    """n bodies in depth-first order; `chain`: how often a body hangs on the one before it (1: a chain, 0: bushy)."""
    bodies = []
    for i in range(n):
        parent = None if i == 0 else f"b{i - 1}" if rng.random() < chain else f"b{rng.integers(0, i)}"
        bodies.append(random_body(rng, i, parent, "free" if i == 0 and floating else str(rng.choice(kinds)), motors))
    return depth_first(bodies)


def _joint_model(b):
    axis, axis2 = b.axis / np.linalg.norm(b.axis), b.axis2 / np.linalg.norm(b.axis2)
    return {
        "revolute": lambda: pin.JointModelRevoluteUnaligned(axis),
        "continuous": lambda: CIRCLE[tuple(int(c) for c in axis)](),
        "prismatic": lambda: pin.JointModelPrismaticUnaligned(axis),
        "screw": lambda: pin.JointModelHelicalUnaligned(axis, b.pitch),
        "universal": lambda: pin.JointModelUniversal(axis, axis2),
        "spherical": pin.JointModelSpherical,
        "planar": pin.JointModelPlanar,
        "free": pin.JointModelFreeFlyer,
    }[b.joint]()


def pinocchio_model(bodies):
    model, number = pin.Model(), {None: 0}
    for b in bodies:
        k = model.addJoint(number[b.parent], _joint_model(b), pin.SE3(b.R_PJ, b.p_PJ_P), b.joint_name)
        number[b.name] = k
        model.appendBodyToJoint(k, pin.Inertia(b.mass, b.com, b.inertia), pin.SE3.Identity())
        first = model.joints[k].idx_v
        model.armature[first : first + model.joints[k].nv] = b.gear_ratio**2 * b.rotor_inertia
    return model, model.createData()


def forces(f_ext):
    out = pin.StdVec_Force()
    out.append(pin.Force.Zero())
    for row in f_ext:
        out.append(pin.Force(row))
    return out


def random_state(rng, model, reach=2.0):
    q = pin.randomConfiguration(model, np.full(model.nq, -reach), np.full(model.nq, reach))
    return q, *(rng.normal(size=model.nv) for _ in range(3))


def full_mass_matrix(model, data, q):
    H = np.triu(pin.crba(model, data, q))
    return H + np.triu(H, 1).T
