"""The sidecar's settings: from the command line, variables `REJOIN_SIDECAR_...` and defaults."""

from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from spark_jobs.errors import ConfigError


class Settings(BaseSettings):
    """Only the status folder is required."""

    model_config = SettingsConfigDict(env_prefix="REJOIN_SIDECAR_", frozen=True, extra="ignore")

    status_dir: Path = Field(description="folder in which the driver writes its records")
    host: str = Field(default="127.0.0.1", description="address to bind; 0.0.0.0 in a pod")
    port: int = Field(default=9640, ge=0, le=65535, description="port to bind; 0: a free one")
    stale_after_s: float = Field(
        default=60.0, gt=0, description="seconds after which a status is stale"
    )
    token_file: Path | None = Field(
        default=None, description="file with the token of the admin verbs; none: they are off"
    )
    kafka_config: Path | None = Field(
        default=None, description="file of librdkafka properties, if brokers need credentials"
    )
    sample_rows: int = Field(
        default=0, ge=0, le=100, description="number of output rows on the page; 0: none"
    )
    mask_columns: str = Field(
        default="", description="columns to mask in output rows, separated by commas"
    )

    @property
    def hidden(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.mask_columns.split(",") if name.strip())


def read_settings(given: dict[str, str]) -> Settings:
    """Read the settings; `given` are the options of the command line."""
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise ConfigError("SETTING_INVALID", "; ".join(problems)) from error
