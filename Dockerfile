# An image of the mock gateway: one static binary, and the public CA certificates for
# webhooks to https URLs.
#
#   docker build -t mockgateway .
#   docker run --rm -p 127.0.0.1:4010:4010 mockgateway
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags='-s -w' -o /mockgateway ./mockserver/cmd/mockgateway

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /mockgateway /mockgateway
USER 65532:65532
ENV MOCKGATEWAY_ADDR=:4010
EXPOSE 4010
HEALTHCHECK --interval=5s --timeout=6s --start-period=30s --start-interval=1s CMD ["/mockgateway", "-health"]
ENTRYPOINT ["/mockgateway"]
