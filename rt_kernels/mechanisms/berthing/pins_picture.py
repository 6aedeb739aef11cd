"""The berthing pins in pictures: sockets, pins and lock on a plane. Keys: those of the part."""

from typing import Any

from rt_kernels.pictures import ACTIVE, ARM_AND_HEAD, TARGET, Bar, Diagram, Looks, Picture, Shape, revolved


class BerthingPinsPicture(Picture):
    """Plane, pins and lock."""

    ANALOG = (("lock", "m"),)

    DIAGRAMS = (
        Diagram("lock in its socket, mm", {"lock_depth": "lock"}, 1e3),
        Diagram("lock, N", {"lock_force": "lock"}),
        Diagram("contacts", {"contacts": "touching"}),
    )

    MIMIC = ARM_AND_HEAD
    KERNEL = True

    def build(self, m: dict[str, Any]) -> Looks:
        """Shapes of pins, lock and sockets, of the mechanism's keys m."""
        offset = m["pin_offset_m"]
        looks = Looks(extent=offset * 1.5)
        pin = [
            [0.0, m["pin_mouth_radius_m"]],
            [m["pin_cone_depth_m"], m["pin_socket_radius_m"]],
            [m["pin_socket_depth_m"], m["pin_socket_radius_m"]],
        ]
        lock = [
            [0.0, m["lock_mouth_radius_m"]],
            [m["lock_cone_depth_m"], m["lock_socket_radius_m"]],
            [m["lock_socket_depth_m"], m["lock_socket_radius_m"]],
        ]
        corners = [[0.0, y, z] for y, z in m["plane_points_m"]]
        plane = [[corners[i] for i in (0, 1, 3, 2, 0)]]
        looks.shapes.append(Shape("T", TARGET, [*revolved(lock), *plane], "lock socket", lock))
        looks.shapes.append(Shape("A", ACTIVE, plane, "plane"))
        ring = m["torus_radius_m"] + m["tube_radius_m"]
        x = m["lock_centre_x_m"]
        tube = [[0.0, ring], [x, ring], [x + m["tube_radius_m"], m["torus_radius_m"]]]
        looks.shapes.append(Shape("A", ACTIVE, revolved(tube), "lock", tube))
        for i, y in enumerate((-offset, offset)):
            looks.shapes.append(Shape("T", TARGET, revolved(pin, centre=(y, 0.0)), f"cone{i + 1}"))
            rod = [[0.0, m["pin_radius_m"]], [m["pin_centre_x_m"], m["pin_radius_m"]], [m["pin_centre_x_m"] + m["pin_radius_m"], 0.0]]
            looks.shapes.append(Shape("A", ACTIVE, revolved(rod, centre=(y, 0.0)), f"pin{i + 1}"))
        looks.bars = [
            Bar("lock depth", "lock_depth", 0, "m", m["roller_exit_m"], "axial"),
            Bar("lock force", "lock_force", 0, "N", 500.0, "axial"),
        ]
        return looks
