"""What the sidecar is told at its start: command line over `REJOIN_SIDECAR_...` over defaults."""

from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from spark_jobs.errors import ConfigError


class Settings(BaseSettings):
    """Without a status directory there is nothing to serve."""

    model_config = SettingsConfigDict(env_prefix="REJOIN_SIDECAR_", frozen=True, extra="ignore")

    status_dir: Path = Field(description="where the driver writes status.json")
    host: str = Field(default="127.0.0.1", description="address to bind; 0.0.0.0 in a pod")
    port: int = Field(default=9640, ge=0, le=65535, description="port to bind; 0: a free one")
    stale_after_s: float = Field(
        default=60.0, gt=0, description="age from which a status says nothing about now"
    )


def read_settings(given: dict[str, str]) -> Settings:
    """`given` are the options of the command line that were used."""
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise ConfigError("SETTING_INVALID", "; ".join(problems)) from error
