"""Object stores: what takes the place of renames and locks where there are none.

Everything that has to happen once rests on one operation: creating an object that must not be there
yet (a conditional PUT). Imports obstore where a URL is opened, and never pyspark.
"""

from __future__ import annotations
