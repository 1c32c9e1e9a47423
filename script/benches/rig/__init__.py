"""What the benchmarks are made of: the load, the floors, the installation measured, the sums."""
