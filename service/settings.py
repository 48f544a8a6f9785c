"""What the sidecar is told at its start: command line over `REJOIN_SIDECAR_...` over defaults."""

from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from spark_jobs.errors import ConfigError


class Settings(BaseSettings):
    """Without a status directory there is nothing to serve."""

    model_config = SettingsConfigDict(env_prefix="REJOIN_SIDECAR_", frozen=True, extra="ignore")

    status_dir: Path = Field(description="where the driver writes its records")
    host: str = Field(default="127.0.0.1", description="address to bind; 0.0.0.0 in a pod")
    port: int = Field(default=9640, ge=0, le=65535, description="port to bind; 0: a free one")
    stale_after_s: float = Field(
        default=60.0, gt=0, description="age from which a status says nothing about now"
    )
    token_file: Path | None = Field(
        default=None, description="bearer token of the admin verbs; without it there are none"
    )
    kafka_config: Path | None = Field(
        default=None, description="librdkafka properties, where the brokers want credentials"
    )
    sample_rows: int = Field(
        default=0, ge=0, le=100, description="latest output rows on the page; 0: none"
    )
    mask_columns: str = Field(
        default="", description="columns that are masked in output rows, with commas"
    )

    @property
    def hidden(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.mask_columns.split(",") if name.strip())


def read_settings(given: dict[str, str]) -> Settings:
    """`given` are the options of the command line that were used."""
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise ConfigError("SETTING_INVALID", "; ".join(problems)) from error
