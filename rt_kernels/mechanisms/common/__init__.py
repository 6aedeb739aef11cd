"""What docking units of different folders share: deformable elements with hysteresis, the retraction drive."""
