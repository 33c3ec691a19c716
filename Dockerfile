# An image of ncs for servers, over the project mounted at /code; /home/ncs keeps the key that signs its indexes.
FROM python:3.13-slim
# git reads bare clones and revisions
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,target=/src,rw pip install --no-cache-dir '/src[languages,mcp,server]' \
    && useradd --create-home ncs && chmod 1777 /home/ncs
ENV HOME=/home/ncs
USER ncs
WORKDIR /code
ENTRYPOINT ["ncs"]
CMD ["serve", "--host", "0.0.0.0"]
