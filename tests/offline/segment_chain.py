"""Dumbbell spacecraft (Wang et al. 2020) as a chain of rigid segments with springs, in Pinocchio: nothing of it is ours.

The truss is cut into n equal lengths. A spring with six stiffnesses stands in the middle of each (axial EA / l, shear k G A / l twice,
torsion G J / l, bending E I / l twice), and rigid segments lie between the springs; the half lengths at the ends belong to the main body
and the reactor. Every spring is a joint of six coordinates, so rotations of any size are exact, and with n to infinity the chain is a
Timoshenko beam in large motion.

The truss's data follow from the paper alone: mass and inertia of its table 1, and stiffnesses with which a Timoshenko beam has the
frequencies of its table 3. SI units; frames as in the paper: x along the truss, main body at -x.
"""

import numpy as np
import pinocchio as pin

LENGTH, END_MASS = 30.0, 5.748                                  # m, kg at either end: brings the inertia to 114762 kg.m2
LINE_MASS = (1505.0 - 2.0 * END_MASS) / LENGTH                  # kg/m
GYRATION = 0.328593                                             # m, of a section about y and z
ROLL = 325.0                                                    # kg.m2 about x, uniform along the truss (table 1)
AXIAL, SHEAR, BENDING = 2.629e6, 3.948e5, 3.644e5               # EA, kGA N; EI N.m2
TORSION_HZ = 1.814                                              # first free-free torsion, c / (2 L) of a uniform shaft (table 3)
MAIN = pin.Inertia(7000.0, np.array([-3.0, 0.0, 0.0]), 42000.0 * np.eye(3))                 # about the truss's first end
REACTOR = pin.Inertia(3500.0, np.array([1.5, 0.0, 0.0]), 5250.0 * np.eye(3))                # about its last end
TORQUE = np.array([50.0, 600.0, 600.0])                         # N.m on the main body, its axes (table 4)


def bar(start, length, roll):
    """Inertia of a piece of the truss along x from `start`; roll: of the whole truss about x."""
    m = LINE_MASS * length
    slender = m * (length**2 / 12.0 + GYRATION**2)
    return pin.Inertia(m, np.array([start + 0.5 * length, 0.0, 0.0]), np.diag([roll * length / LENGTH, slender, slender]))


END = pin.Inertia(END_MASS, np.zeros(3), END_MASS * GYRATION**2 * np.diag([0.0, 1.0, 1.0]))


class SegmentChain:
    """`springs` of them, springs - 1 whole segments and two halves; loaded=False leaves the end bodies away (the bare truss).

    roll: the truss's moment of inertia about x, kg.m2; its torsional stiffness follows from TORSION_HZ.

    Body frames: the main body's at the truss's first end, a segment's at the spring before it, the reactor's likewise with the truss's last
    end at x = l / 2.
    """

    def __init__(self, springs=21, loaded=True, roll=ROLL):
        self.n, self.l = springs, LENGTH / springs
        half = 0.5 * self.l
        self.model = model = pin.Model()
        model.gravity.linear[:] = 0.0
        first = bar(0.0, half, roll) + END + (MAIN if loaded else pin.Inertia.Zero())
        end = pin.SE3(np.eye(3), np.array([half, 0.0, 0.0]))
        last = bar(0.0, half, roll) + end.act(END) + (end.act(REACTOR) if loaded else pin.Inertia.Zero())
        parent, place = 0, pin.SE3.Identity()
        for k in range(springs + 1):
            parent = model.addJoint(parent, pin.JointModelFreeFlyer(), place, f"joint{k}")
            inertia = first if k == 0 else last if k == springs else bar(0.0, self.l, roll)
            model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
            place = pin.SE3(np.eye(3), np.array([half if k == 0 else self.l, 0.0, 0.0]))
        self.data = model.createData()
        self.stretch = np.array([AXIAL, SHEAR, SHEAR]) / self.l
        self.turn = np.array([roll / LENGTH * (2.0 * LENGTH * TORSION_HZ) ** 2, BENDING, BENDING]) / self.l

    def spring_forces(self, q):
        """(nv,) generalised forces of all springs: energy (stretch p^2 + turn theta^2) / 2 of a joint moved by p, turned by theta."""
        x = q.reshape(-1, 7)[1:]
        p, e, w = x[:, :3], x[:, 3:6], x[:, 6:]
        s = np.sqrt((e * e).sum(axis=1, keepdims=True))
        theta = 2.0 * np.where(s > 1e-12, np.arctan2(s, w) / np.where(s > 1e-12, s, 1.0), 1.0 / w) * e
        force, torque = -self.stretch * p, -self.turn * theta
        # force on child axes: R^T f; torque: transpose of the rate's map, 1 - theta/2 + theta theta/12 (next term: fourth order)
        turned = 2.0 * np.cross(e, force)
        linear = force - w * turned + np.cross(e, turned)
        first = np.cross(theta, torque)
        out = np.zeros((self.n + 1, 6))
        out[1:, :3], out[1:, 3:] = linear, torque - 0.5 * first + np.cross(theta, first) / 12.0
        return out.ravel()

    def energy(self, q, v):
        """Kinetic and potential energy, J."""
        x = q.reshape(-1, 7)[1:]
        theta = np.array([pin.log3(pin.Quaternion(row[3:]).matrix()) for row in x])
        potential = 0.5 * ((self.stretch * x[:, :3] ** 2).sum() + (self.turn * theta**2).sum())
        return pin.computeKineticEnergy(self.model, self.data, q, v) + potential

    def frequencies(self):
        """Small vibrations about rest, Hz, without the six rigid-body zeros."""
        from scipy.linalg import eigh

        M = pin.crba(self.model, self.data, pin.neutral(self.model))
        M = np.triu(M) + np.triu(M, 1).T
        K = np.diag(np.concatenate([np.zeros(6), np.tile(np.concatenate([self.stretch, self.turn]), self.n)]))
        return np.sqrt(np.clip(eigh(K, M, eigvals_only=True, subset_by_index=(6, 30)), 0.0, None)) / (2.0 * np.pi)

    def tip(self, q):
        """(3,) displacement of the truss's last end on axes of the main body, m."""
        pin.forwardKinematics(self.model, self.data, q)
        last = self.data.oMi[1].actInv(self.data.oMi[self.n + 1])
        return last.act(np.array([0.5 * self.l, 0.0, 0.0])) - [LENGTH, 0.0, 0.0]

    def fly(self, seconds, step, torque=TORQUE, every=0.05):
        """From rest under a constant torque on the main body: times (n,), tip displacements (n, 3), last (q, v), work of the torque J.

        Leapfrog; the velocity that the gyroscopic terms need is carried half a step further with the last acceleration.
        """
        model, data = self.model, self.data
        q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        count, stride = round(seconds / step), round(every / step)
        times, tips = [0.0], [np.zeros(3)]
        load, work = np.zeros(model.nv), 0.0
        load[3:6] = torque
        for k in range(count):
            # v belongs to half a step before q
            a = pin.aba(model, data, q, v + 0.5 * step * a, self.spring_forces(q) + load)
            v = v + (step if k else 0.5 * step) * a
            q = pin.integrate(model, q, step * v)
            work += step * (torque @ v[3:6])
            if (k + 1) % stride == 0:
                times.append((k + 1) * step)
                tips.append(self.tip(q))
        a = pin.aba(model, data, q, v + 0.5 * step * a, self.spring_forces(q) + load)
        return np.array(times), np.array(tips), (q, v + 0.5 * step * a), work
