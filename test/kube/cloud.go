package main

import (
	"context"
	"errors"
	"hash/fnv"
	"net/netip"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
)

// runCloudControllerManager runs Kubernetes' own service controller, which decides
// whether a Service gets a load balancer. The cloud provides a load balancer for every
// Service.
func runCloudControllerManager() int {
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return fail("cloud-controller-manager: preparing its options", err)
	}
	opts.KubeCloudShared.CloudProvider.Name = cloudName

	var extra cliflag.NamedFlagSets
	addresses := extra.FlagSet("cloud").String("load-balancer-range", "203.0.113.0/24",
		"The IPv4 prefix that load balancers take their address from.")

	service := app.DefaultInitFuncConstructors[names.ServiceLBController]
	return cli.Run(app.NewCloudControllerManagerCommand(
		opts,
		func(*config.CompletedConfig) cloudprovider.Interface {
			prefix, err := parseRange(*addresses)
			if err != nil {
				os.Exit(fail("cloud-controller-manager: reading --load-balancer-range", err))
			}
			return cloud{addresses: prefix}
		},
		map[string]app.ControllerInitFuncConstructor{names.ServiceLBController: service},
		names.CCMControllerAliases(),
		extra,
		wait.NeverStop,
	))
}

const cloudName = "loopback"

func parseRange(s string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	if !prefix.Addr().Is4() || prefix.Bits() > 24 {
		return netip.Prefix{}, errors.New("want an IPv4 prefix of 24 bits or fewer")
	}
	return prefix.Masked(), nil
}

// cloud gives every load balancer an address at once, and stores nothing.
type cloud struct{ addresses netip.Prefix }

var (
	_ cloudprovider.Interface    = cloud{}
	_ cloudprovider.LoadBalancer = cloud{}
)

func (c cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c, true }

func (cloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}
func (cloud) Instances() (cloudprovider.Instances, bool)                        { return nil, false }
func (cloud) InstancesV2() (cloudprovider.InstancesV2, bool)                    { return nil, false }
func (cloud) Zones() (cloudprovider.Zones, bool)                                { return nil, false }
func (cloud) Clusters() (cloudprovider.Clusters, bool)                          { return nil, false }
func (cloud) Routes() (cloudprovider.Routes, bool)                              { return nil, false }
func (cloud) ProviderName() string                                              { return cloudName }
func (cloud) HasClusterID() bool                                                { return true }

func (c cloud) GetLoadBalancer(_ context.Context, _ string, service *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	return c.status(service), true, nil
}

func (cloud) GetLoadBalancerName(_ context.Context, _ string, service *corev1.Service) string {
	return service.Namespace + "-" + service.Name
}

func (c cloud) EnsureLoadBalancer(_ context.Context, _ string, service *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	return c.status(service), nil
}

func (cloud) UpdateLoadBalancer(context.Context, string, *corev1.Service, []*corev1.Node) error {
	return nil
}

func (cloud) EnsureLoadBalancerDeleted(context.Context, string, *corev1.Service) error { return nil }

// status returns an address that depends only on the Service's name, so that a test can
// expect it, and a restart does not change it.
func (c cloud) status(service *corev1.Service) *corev1.LoadBalancerStatus {
	hash := fnv.New32a()
	hash.Write([]byte(service.Namespace + "/" + service.Name))
	address := c.addresses.Addr().As4()
	address[3] = byte(1 + hash.Sum32()%254)
	return &corev1.LoadBalancerStatus{
		Ingress: []corev1.LoadBalancerIngress{{IP: netip.AddrFrom4(address).String()}},
	}
}
