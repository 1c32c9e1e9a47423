"""What the scripts in this folder's parent do, once a Python and the packages are there."""
