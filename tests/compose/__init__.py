"""The Dockerfile and docker-compose.yml, built and run with podman; stand-ins for other images."""
