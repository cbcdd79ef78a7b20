package bench_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

const hcloudID = "4200000000"

var server = compact(`{
	"id":4200000000,"name":"shop-2027-0117","status":"running","created":"2027-01-04T12:00:00+00:00",
	"public_net":{"ipv4":{"id":1,"ip":"203.0.113.7","blocked":false,"dns_ptr":"shop.example.com"},
		"ipv6":{"id":2,"ip":"2001:db8::/64","blocked":false,"dns_ptr":[{"ip":"2001:db8::1","dns_ptr":"shop.example.com"}]},
		"floating_ips":[478],"firewalls":[{"id":38,"status":"applied"}]},
	"private_net":[{"network":4711,"ip":"10.0.0.2","alias_ips":["10.0.0.3","10.0.0.4"],"mac_address":"86:00:ff:2a:7d:e1"}],
	"server_type":{"id":22,"name":"cpx11","description":"CPX 11","cores":2,"memory":2,"disk":40,"deprecated":false,
		"prices":[{"location":"fsn1","price_hourly":{"net":"0.0063","gross":"0.0075"},
			"price_monthly":{"net":"3.85","gross":"4.58"}}],"storage_type":"local","cpu_type":"shared","architecture":"x86"},
	"included_traffic":654321,"outgoing_traffic":123456,"ingoing_traffic":123456,"backup_window":"22-02",
	"rescue_enabled":false,"iso":null,"locked":false,
	"location":{"id":1,"name":"fsn1","description":"Falkenstein DC Park 1","country":"DE","city":"Falkenstein",
		"latitude":50.47612,"longitude":12.370071,"network_zone":"eu-central"},
	"image":{"id":42,"type":"system","status":"available","name":"debian-13","description":"Debian 13","image_size":2.3,
		"disk_size":10,"created":"2026-10-01T00:00:00+00:00","created_from":null,"bound_to":null,"os_flavor":"debian",
		"os_version":"13","rapid_deploy":true,"protection":{"delete":false},"deprecated":null,"labels":{},"architecture":"x86"},
	"protection":{"delete":false,"rebuild":false},"labels":{"order":"2027-0117","reference":"order-2027-0117-k3x9qa"},
	"volumes":[],"primary_disk_size":40,"placement_group":null,"load_balancers":[]}`)

func hcloudBackend() *backend {
	return &backend{
		one: []byte(`{"server":` + server + `}`),
		list: func(n int) []byte {
			next := "null"
			if n+1 < pages {
				next = strconv.Itoa(n + 2)
			}
			return fmt.Appendf(nil, `{"servers":[%s],"meta":{"pagination":{"page":%d,"per_page":%d,"previous_page":null,`+
				`"next_page":%s,"last_page":%d,"total_entries":%d}}}`, items(server, n), n+1, pageSize, next, pages, listSize)
		},
		pageOf: queryPage("/servers", "page", 1),
	}
}

func openHCloud(n network) (calls, error) {
	client := hcloud.NewClient(hcloud.WithToken("bench"), hcloud.WithEndpoint(n.base),
		hcloud.WithHTTPClient(&http.Client{Transport: n.transport}))
	return calls{
		create: func(ctx context.Context) (string, error) {
			result, _, err := client.Server.Create(ctx, serverOptions())
			if err != nil {
				return "", err
			}
			return strconv.FormatInt(result.Server.ID, 10), nil
		},
		get: func(ctx context.Context) (string, error) {
			s, _, err := client.Server.GetByID(ctx, 4200000000)
			if err != nil {
				return "", err
			}
			return strconv.FormatInt(s.ID, 10), nil
		},
		list: func(ctx context.Context) (n int, err error) {
			all, err := client.Server.All(ctx)
			for _, s := range all {
				n += int(min(s.ID, 1))
			}
			return n, err
		},
	}, nil
}

func serverOptions() hcloud.ServerCreateOpts {
	return hcloud.ServerCreateOpts{
		Name:       "shop-2027-0117",
		ServerType: &hcloud.ServerType{Name: "cpx11"},
		Image:      &hcloud.Image{Name: "debian-13"},
		SSHKeys:    []*hcloud.SSHKey{{ID: 101}, {ID: 102}, {ID: 103}},
		Location:   &hcloud.Location{Name: "fsn1"},
		UserData: "#cloud-config\npackages: [postgresql, nginx, ca-certificates]\nusers:\n" +
			"  - name: shop\n    groups: www-data\n    shell: /usr/sbin/nologin\nwrite_files:\n" +
			"  - path: /etc/shop/env\n    owner: shop:shop\n    permissions: '0600'\n    content: |\n" +
			"      GATEWAY_BASE_URL=https://api.example.com\n      NOTIFY_URL=https://shop.example.com/webhooks/gateway\n" +
			"runcmd:\n  - systemctl enable --now postgresql\n  - systemctl enable --now nginx\n  - systemctl enable --now shop\n" +
			"final_message: shop 2027-0117 is up after $UPTIME seconds, see /var/log/cloud-init.log\n",
		StartAfterCreate: new(true),
		Labels: map[string]string{
			"order": "2027-0117", "reference": "order-2027-0117-k3x9qa", "cart": "8f2c", "campaign": "verao", "channel": "web",
		},
		Automount: new(false),
		Networks:  []*hcloud.Network{{ID: 4711}, {ID: 4712}},
		Firewalls: []*hcloud.ServerCreateFirewall{{Firewall: hcloud.Firewall{ID: 38}}, {Firewall: hcloud.Firewall{ID: 39}}},
		PublicNet: &hcloud.ServerCreatePublicNet{EnableIPv4: true, EnableIPv6: true},
	}
}
