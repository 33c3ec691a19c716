# An image of ncs for servers: ncs serve, or ncs mcp over stdin and stdout, over the project in /code.
#   docker build -t ncs . && docker run -v "$PWD:/code" -p 127.0.0.1:8765:8765 ncs
FROM python:3.13-slim
RUN --mount=type=bind,target=/src,rw pip install --no-cache-dir '/src[languages,mcp,server]' \
    && useradd --create-home ncs
USER ncs
WORKDIR /code
ENTRYPOINT ["ncs"]
CMD ["serve", "--host", "0.0.0.0"]
