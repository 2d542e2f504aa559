// One binary that is a whole Kubernetes control plane: each component's own entry point, chosen by the first
// argument. It exists because the Go module proxy carries Kubernetes' sources, but nobody's binaries.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
	"kwok":                    newKwokCommand,
}

// newKwokCommand reads the file that --config names before there is a command: kwok finds its stages in the context.
func newKwokCommand() *cobra.Command {
	flags := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, err := kwokconfig.InitFlags(context.Background(), flags)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	command.SetContext(ctx)
	command.Version = "" // Kubernetes' own --version flag is there already, and cobra takes it for kwok's.
	return command
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: control-plane COMPONENT [FLAGS]")
		os.Exit(2)
	}
	component := os.Args[1]
	os.Args = os.Args[1:]
	if component == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := components[component]
	if !known {
		fmt.Fprintf(os.Stderr, "unknown component %q\n", component)
		os.Exit(2)
	}
	if component == "kubectl" {
		if err := cli.RunNoErrOutput(command()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return
	}
	os.Exit(cli.Run(command()))
}
