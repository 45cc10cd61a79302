"""What the REST interface answers with: JSON forms of the controller's values, described for OpenAPI.

Units stand in the names: `_bit_s` is bits a second, `_s` seconds; times `at_s` are Unix time.
"""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict


class View(BaseModel):
    """Shows a value of the controller's whose fields have the same names."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, value: object) -> Self:
        return cls.model_validate(value)
