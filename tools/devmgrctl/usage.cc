// SPDX-License-Identifier: Apache-2.0
#include "usage.h"

#include <string_view>
#include <vector>

#include "text.h"

namespace devmgr::ctl {
namespace {

struct Usage {
  std::string_view verb;
  std::string_view form;
  std::string_view example;
};

constexpr Usage kAny = {"", "VERB [ARGUMENTS] [FLAGS]", "get pods"};

constexpr Usage kUsages[] = {
    {"status", "status", "status -o json"},
    {"version", "version", "version"},
    {"get", "get KIND [NAME] or get KIND/NAME", "get pod demo -o wide"},
    {"describe", "describe KIND NAME or describe KIND/NAME",
     "describe claim default/gpu"},
    {"resolve", "resolve POD [-c CONTAINER] or resolve --diff CONTAINER_ID",
     "resolve default/demo -c main"},
    {"explain", "explain pod NAME", "explain pod default/demo"},
    {"wait", "wait pod NAME --for=ready|waiting|rejected|released",
     "wait pod demo --for=ready --timeout 30s"},
    {"prepare", "prepare pod NAME", "prepare pod default/demo"},
    {"release",
     "release pod NAME or release claim NAME --force --reason TEXT --yes",
     "release claim gpu --force --reason 'the card is gone' --yes"},
    {"hand-over",
     "hand-over resource NAME --to plugin|class|automatic --reason TEXT --yes",
     "hand-over resource example.com/gpu --to class --reason 'new driver' "
     "--yes"},
    {"authority", "authority set node|scheduler --reason TEXT --yes",
     "authority set node --reason 'the server is gone' --yes"},
    {"confirm", "confirm source --reason TEXT --yes",
     "confirm source --reason 'the node was drained' --yes"},
    {"free", "free holder CONTAINER --reason TEXT --yes",
     "free holder 0123456789abc --reason 'it hangs' --yes"},
    {"recheck", "recheck device NAME [--device ID] --reason TEXT",
     "recheck device example.com/gpu --device 3 --reason 'reseated'"},
    {"events", "events [--follow] [--since TIME]", "events --since 10m"},
    {"history", "history [POD|CLAIM] [--since SEQ|TIME]",
     "history pod/default/demo --since 10m"},
    {"state", "state [--at SEQ|TIME]", "state --at 2026-11-21T10:00:00Z"},
    {"diff", "diff --from SEQ|TIME [--to SEQ|TIME]", "diff --from 10m"},
    {"fsck", "fsck [--repair [--yes]]", "fsck --repair --yes"},
    {"inject", "inject --pod POD -c CONTAINER --spec FILE [-o FILE]",
     "inject --pod demo -c main --spec config.json -o config.json"},
    {"cel", "cel EXPR --slice FILE [--driver DRIVER] [--v1alpha2]",
     "cel 'device.driver == \"gpu.example.com\"' --slice slices.yaml"},
    {"allocate",
     "allocate -f FILE... --node NAME [--node-labels K=V,...] "
     "[--feature-gates GATE=true|false,...]",
     "allocate -f slices.yaml -f claims.yaml --node node-1"},
    {"simulate",
     "simulate -f FILE... [--minus POD]... [--slices FILE]... [--plugin "
     "NAME=N]... [--like NAME | --node NAME] [--independent | --count]",
     "simulate -f pod.yaml --minus default/demo"},
    {"podresources", "podresources list|allocatable|get [--socket SOCKET]",
     "podresources list"},
    {"podresources list", "podresources list", "podresources list -o wide"},
    {"podresources allocatable", "podresources allocatable",
     "podresources allocatable -o json"},
    {"podresources get", "podresources get POD",
     "podresources get default/demo"},
    {"verify", "verify kubelet KUBELET_DIR", "verify kubelet /var/lib/kubelet"},
    {"verify kubelet", "verify kubelet KUBELET_DIR",
     "verify kubelet /var/lib/kubelet"},
    {"cdi", "cdi dirs|list|show|validate|watch|min-version", "cdi list"},
    {"cdi dirs", "cdi dirs", "cdi dirs"},
    {"cdi list", "cdi list", "cdi list --cdi-spec-dir /etc/cdi"},
    {"cdi show", "cdi show VENDOR/CLASS=DEVICE", "cdi show nvidia.com/gpu=0"},
    {"cdi validate", "cdi validate [PATH...]",
     "cdi validate /etc/cdi/nvidia.yaml"},
    {"cdi watch", "cdi watch [--timeout DURATION]", "cdi watch --timeout 1m"},
    {"cdi min-version", "cdi min-version FILE",
     "cdi min-version /etc/cdi/nvidia.yaml"},
};

/// `cdi show`, as far as the verb has been read.
std::string VerbOf(const CLI::App& app) {
  std::vector<std::string> names;
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    names.push_back(at->get_name());
  }
  return Join(names, " ");
}

const Usage& UsageOf(const std::string& verb) {
  for (const Usage& usage : kUsages) {
    if (usage.verb == verb) return usage;
  }
  return kAny;
}

}  // namespace

void PrintUsageError(std::ostream& err, const CLI::App& app,
                     const std::string& what) {
  const std::string verb = VerbOf(app);
  const Usage& usage = UsageOf(verb);
  err << "devmgrctl: " << Clean(what) << "\n"
      << "Expected: devmgrctl " << usage.form << "\n"
      << "Example:  devmgrctl " << usage.example << "\n"
      << "Flags:    devmgrctl " << verb << (verb.empty() ? "" : " ")
      << "--help\n";
}

}  // namespace devmgr::ctl
