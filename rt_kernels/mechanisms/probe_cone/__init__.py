"""The central (probe-cone) docking unit.

    unit.pyx            the part: one tick in sub-steps, the wrenches, the sensors           ProbeCone
    declaration.py      its parameters                 setup.pyx       parameters into the constants of the model
    model.pxd           constants, state and work space of the unit   record.toml    its auxiliary channels
    contacts.pyx        head, limiter, rollers, docking planes        latches.pyx    latches and sensor levers
                        (contact_sums.pxd: what both sum up)
    joints.pyx          elastic probe, lateral springs and brakes     stroke.pyx     ball screw, axial damper, movable limiter
                        (magnetic_brake.pxd: what both brake with)    cover.pyx      hatch cover of stand tests
    dynamics.pyx        the tree of bodies             chains.pyx      the dependent chains of the lateral damper

    simple.pyx          a sprung head, a cone and a latch: what a stand test needs           ProbeConeSimple
"""
