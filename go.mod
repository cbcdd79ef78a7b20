module github.com/gateway-go/gateway

go 1.26.0

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/google/go-querystring v1.2.0
	github.com/google/uuid v1.6.0
	github.com/hashicorp/go-retryablehttp v0.7.8
	github.com/jarcoal/httpmock v1.4.2
	github.com/stretchr/testify v1.12.1
)

require github.com/hashicorp/go-cleanhttp v0.5.2 // indirect

require (
	github.com/boombuler/barcode v1.1.0
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
