// SPDX-License-Identifier: Apache-2.0
#include "pod_spec.h"

#include <devmgr/manifests.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

namespace edge {
namespace {

using devmgr::Container;
using nlohmann::json;
using Names = std::set<std::string>;

json At(const json& object, const char* key, json none) {
  return object.is_object() && object.contains(key) ? object.at(key) : none;
}
std::string TextAt(const json& object, const char* key) {
  return At(object, key, "").get<std::string>();
}

/// Members that are carried out, or that only schedulers and API servers read.
const Names kOfPod = {"containers",
                      "initContainers",
                      "volumes",
                      "restartPolicy",
                      "terminationGracePeriodSeconds",
                      "resourceClaims",
                      "hostNetwork",
                      "nodeName",
                      "nodeSelector",
                      "tolerations",
                      "affinity",
                      "schedulerName",
                      "priority",
                      "priorityClassName"};
const Names kOfContainer = {"name",           "image",
                            "command",        "args",
                            "workingDir",     "env",
                            "resources",      "volumeMounts",
                            "ports",          "securityContext",
                            "imagePullPolicy"};

/// Finds what is asked for and not done: what the pod cannot do without is
/// refused, all else has no effect.
class Review {
 public:
  void Pod(const json& spec) {
    Members(spec, "spec", kOfPod);
    if (!At(spec, "hostNetwork", false).get<bool>()) {
      ignored.push_back("spec.hostNetwork false (there is no other network)");
    }
    for (const json& volume : At(spec, "volumes", json::array())) {
      const std::string path = "spec.volumes '" + TextAt(volume, "name") + "'";
      if (!volume.contains("emptyDir") && !volume.contains("hostPath")) {
        refused.push_back(path + " (only emptyDir and hostPath)");
      }
      Members(At(volume, "emptyDir", {}), path + ".emptyDir", {});
      Members(At(volume, "hostPath", {}), path + ".hostPath", {"path"});
    }
    for (const char* list : {"initContainers", "containers"}) {
      for (const json& one : At(spec, list, json::array())) {
        OneContainer(one, std::string("spec.") + list + " '" +
                              TextAt(one, "name") + "'");
      }
    }
  }
  std::vector<std::string> ignored;
  std::vector<std::string> refused;

 private:
  void Members(const json& object, const std::string& path,
               const Names& known) {
    if (!object.is_object()) return;
    for (const auto& [key, value] : object.items()) {
      if (known.count(key) != 0) continue;
      std::string& what = ignored.emplace_back(path);
      what += ".";
      what += key;
    }
  }

  void OneContainer(const json& container, const std::string& path) {
    Names known = kOfContainer;
    if (container.contains("envFrom")) refused.push_back(path + ".envFrom");
    known.insert(
        {"envFrom", path.find("init") != path.npos &&
                            TextAt(container, "restartPolicy") == "Always"
                        ? "restartPolicy"
                        : "name"});
    Members(container, path, known);
    Members(At(container, "securityContext", {}), path + ".securityContext",
            {"privileged"});
    if (TextAt(container, "imagePullPolicy") == "Always") {
      ignored.push_back(path + ".imagePullPolicy (no image is pulled)");
    }
    const json resources = At(container, "resources", json::object());
    for (const char* name : {"cpu", "memory", "ephemeral-storage"}) {
      if (!At(resources, "limits", json::object()).contains(name)) continue;
      ignored.push_back(path + ".resources.limits." + name);
    }
    for (const json& variable : At(container, "env", json::array())) {
      const std::string name = path + ".env '" + TextAt(variable, "name") + "'";
      if (variable.contains("valueFrom"))
        refused.push_back(name + ".valueFrom");
      NoReferences(TextAt(variable, "value"), name);
    }
    for (const char* list : {"command", "args"}) {
      for (const json& word : At(container, list, json::array())) {
        NoReferences(word.get<std::string>(), path + "." + list);
      }
    }
    for (const json& mount : At(container, "volumeMounts", json::array())) {
      const std::string name =
          path + ".volumeMounts '" + TextAt(mount, "name") + "'";
      Members(mount, name, {"name", "mountPath", "readOnly", "subPath"});
      if (mount.contains("subPath")) refused.push_back(name + ".subPath");
    }
  }
  void NoReferences(const std::string& text, const std::string& path) {
    if (text.find("$(") == std::string::npos) return;
    refused.push_back(path + " (references such as $(NAME))");
  }
};

PodPlan PlanOf(const devmgr::PodSpec& spec) {
  using Kind = PlannedContainer::Kind;
  PodPlan plan;
  plan.restart_policy = spec.restart_policy;
  for (const Container& one : spec.init_containers) {
    const bool sidecar = one.restart_policy == "Always";
    plan.containers.push_back(
        {one.name, sidecar ? Kind::kSidecar : Kind::kInit});
  }
  for (const Container& one : spec.containers) {
    plan.containers.push_back({one.name, Kind::kApp});
  }
  return plan;
}

absl::Status BadPod(const std::string& what) {
  return absl::InvalidArgumentError(absl::string_view(what));
}

json ContainerOf(const json& spec, const std::string& name) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& one : At(spec, list, json::array())) {
      if (TextAt(one, "name") == name) return one;
    }
  }
  return json::object();
}

void PutNetwork(cri::NamespaceOption* options) {
  options->set_network(cri::NODE);
  options->set_pid(cri::CONTAINER);
}

void PutSecurity(const json& container,
                 cri::LinuxContainerSecurityContext* to) {
  PutNetwork(to->mutable_namespace_options());
  to->set_privileged(
      At(At(container, "securityContext", {}), "privileged", false));
  if (to->privileged()) return;
  // What clients of CRI hide by default; the runtime hides nothing by itself.
  for (const char* path :
       {"acpi", "asound", "interrupts", "kcore", "keys", "latency_stats",
        "sched_debug", "scsi", "timer_list", "timer_stats"}) {
    to->add_masked_paths(std::string("/proc/") + path);
  }
  to->add_masked_paths("/sys/devices/virtual/powercap");
  to->add_masked_paths("/sys/firmware");
  for (const char* path : {"bus", "fs", "irq", "sys", "sysrq-trigger"}) {
    to->add_readonly_paths(std::string("/proc/") + path);
  }
}

absl::Status PutVolumes(const json& spec, const json& container,
                        const PodPlaces& places, cri::ContainerConfig* config) {
  std::map<std::string, std::filesystem::path> hosts;
  for (const json& volume : At(spec, "volumes", json::array())) {
    const std::string name = TextAt(volume, "name");
    hosts[name] = volume.contains("hostPath")
                      ? TextAt(volume.at("hostPath"), "path")
                      : (places.volumes / name).string();
  }
  for (const json& mount : At(container, "volumeMounts", json::array())) {
    const auto host = hosts.find(TextAt(mount, "name"));
    if (host == hosts.end()) {
      return BadPod("there is no volume '" + TextAt(mount, "name") + "'");
    }
    if (host->second.parent_path() == places.volumes) {
      std::error_code error;  // The runtime says so if it is not there.
      std::filesystem::create_directories(host->second, error);
      std::filesystem::permissions(host->second, std::filesystem::perms::all,
                                   error);
    }
    cri::Mount* to = config->add_mounts();
    to->set_container_path(TextAt(mount, "mountPath"));
    to->set_host_path(host->second.string());
    to->set_readonly(At(mount, "readOnly", false));
  }
  return absl::OkStatus();
}

void PutProcess(const json& container, cri::ContainerConfig* config) {
  for (const json& variable : At(container, "env", json::array())) {
    cri::KeyValue* to = config->add_envs();
    to->set_key(TextAt(variable, "name"));
    to->set_value(TextAt(variable, "value"));
  }
  for (const json& word : At(container, "command", json::array())) {
    config->add_command(word.get<std::string>());
  }
  for (const json& word : At(container, "args", json::array())) {
    config->add_args(word.get<std::string>());
  }
  config->set_working_dir(TextAt(container, "workingDir"));
}

/// One of its kind in the container: what was there before goes.
template <typename Items, typename Key>
auto* Put(Items* items, const Key& key, const std::string& value) {
  const auto same = [&](const auto& one) { return key(one) == value; };
  items->erase(std::remove_if(items->begin(), items->end(), same),
               items->end());
  return items->Add();
}

/// The edits of device plugins, or of CDI devices.
template <typename Edits>
void PutEdits(const Edits& edits, cri::ContainerConfig* config) {
  const auto path = [](const auto& one) { return one.container_path(); };
  for (const auto& variable : edits.env) {
    cri::KeyValue* to = Put(
        config->mutable_envs(), [](const auto& one) { return one.key(); },
        variable.name);
    to->set_key(variable.name);
    to->set_value(variable.value);
  }
  for (const auto& mount : edits.mounts) {
    cri::Mount* to = Put(config->mutable_mounts(), path, mount.container_path);
    to->set_container_path(mount.container_path);
    to->set_host_path(mount.host_path);
    to->set_readonly(mount.read_only);
    if constexpr (requires { mount.propagation; }) {
      to->set_propagation(
          static_cast<cri::MountPropagation>(mount.propagation));
      for (const auto& option : mount.options) to->add_mount_options(option);
    }
  }
  for (const auto& node : edits.devices) {
    cri::Device* to = Put(config->mutable_devices(), path, node.container_path);
    to->set_container_path(node.container_path);
    to->set_host_path(node.host_path);
    to->set_permissions(node.permissions);
  }
}

template <typename Labels>
void PutLabels(const devmgr::ObjectMeta& pod, Labels* labels) {
  (*labels)["io.kubernetes.pod.name"] = pod.name;
  (*labels)["io.kubernetes.pod.namespace"] = pod.ns;
  (*labels)[kUidLabel] = pod.uid;
}

}  // namespace

absl::StatusOr<PodSpec> ReadPodSpec(const std::string& text,
                                    const devmgr::PodUid& uid) {
  const auto decoded = devmgr::DecodeManifest(text, "pod.json");
  if (!decoded.errors.empty()) return BadPod(decoded.errors[0].ToString());
  if (decoded.objects.size() != 1) return BadPod("the pod breaks an API rule");
  const auto& pod = std::get<devmgr::Pod>(decoded.objects[0].object);
  PodSpec spec{text, {}, pod.metadata, PlanOf(pod.spec), {}, {}};
  spec.metadata.uid = uid.value;
  // The library looked at what is about devices: the rest may have any type.
  try {
    spec.json = json::parse(text).at("spec");
    Review review;
    review.Pod(spec.json);
    std::string refused;
    for (const auto& what : review.refused) refused += "; " + what;
    if (!refused.empty()) {
      return BadPod("the pod needs what edge-kubelet cannot do" + refused);
    }
    spec.ignored = std::move(review.ignored);
    const json grace = At(spec.json, "terminationGracePeriodSeconds", 30);
    spec.grace = std::chrono::seconds(std::max(0, grace.get<int>()));
  } catch (const json::exception& error) {
    return BadPod(error.what());
  }
  return spec;
}

cri::PodSandboxConfig SandboxConfigOf(const PodSpec& spec,
                                      std::uint32_t attempt,
                                      const PodPlaces& places,
                                      const std::string& root) {
  cri::PodSandboxConfig config;
  const devmgr::ObjectMeta& pod = spec.metadata;
  config.mutable_metadata()->set_name(pod.name);
  config.mutable_metadata()->set_uid(pod.uid);
  config.mutable_metadata()->set_namespace_(pod.ns);
  config.mutable_metadata()->set_attempt(attempt);
  config.set_log_directory(places.logs.string());
  config.mutable_labels()->insert(pod.labels.begin(), pod.labels.end());
  config.mutable_annotations()->insert(pod.annotations.begin(),
                                       pod.annotations.end());
  PutLabels(pod, config.mutable_labels());
  (*config.mutable_labels())[kRootLabel] = root;
  (*config.mutable_annotations())[kManifestAnnotation] = spec.text;
  auto* security = config.mutable_linux()->mutable_security_context();
  PutNetwork(security->mutable_namespace_options());
  const json all = At(spec.json, "containers", json::array());
  // A sandbox that is not privileged can have no such containers.
  security->set_privileged(std::any_of(all.begin(), all.end(), [](auto& one) {
    return At(At(one, "securityContext", {}), "privileged", false) == true;
  }));
  return config;
}

absl::StatusOr<cri::ContainerConfig> ContainerConfigOf(
    const PodSpec& spec, const Step& start, const PodPlaces& places,
    const devmgr::ContainerDevices& devices) {
  const std::string& name = start.container.name;
  cri::ContainerConfig config;
  config.mutable_metadata()->set_name(name);
  config.mutable_metadata()->set_attempt(start.attempt);
  config.set_log_path(name + "/" + std::to_string(start.attempt) + ".log");
  // In the kubelet's order: of a variable that the pod has, too, the pod's
  // counts.
  PutEdits(devices, &config);
  for (const auto& annotation : devices.annotations) {
    (*config.mutable_annotations())[annotation.name] = annotation.value;
  }
  for (const auto& device : devices.cdi_devices) {
    config.add_cdi_devices()->set_name(device.name);
  }
  try {
    const json container = ContainerOf(spec.json, name);
    config.mutable_image()->set_image(TextAt(container, "image"));
    PutProcess(container, &config);
    PutSecurity(container, config.mutable_linux()->mutable_security_context());
    const absl::Status status =
        PutVolumes(spec.json, container, places, &config);
    if (!status.ok()) return status;
  } catch (const json::exception& error) {
    return BadPod("container '" + name + "': " + error.what());
  }
  PutLabels(spec.metadata, config.mutable_labels());
  (*config.mutable_labels())["io.kubernetes.container.name"] = name;
  (*config.mutable_annotations())[kBackOffAnnotation] =
      std::to_string(start.back_off.count());
  return config;
}

void ReplaceCdiNames(const devmgr::CriEdits& edits,
                     cri::ContainerConfig* config) {
  config->clear_cdi_devices();
  std::set<std::string> keys;
  for (const auto& [key, value] : config->annotations()) keys.insert(key);
  for (const std::string& key : keys) {
    if (devmgr::IsCdiAnnotation(key)) config->mutable_annotations()->erase(key);
  }
  PutEdits(edits, config);
  auto* groups = config->mutable_linux()
                     ->mutable_security_context()
                     ->mutable_supplemental_groups();
  for (const std::uint32_t group : edits.supplemental_groups) {
    const auto found = std::find(groups->begin(), groups->end(), group);
    if (found == groups->end()) groups->Add(group);
  }
}

}  // namespace edge
