// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <devmgr/manifests.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "pod.h"

namespace edge {
namespace {

using nlohmann::json;
using Texts = std::map<std::string, std::string>;

/// What of a pod is carried out, here or by schedulers and API servers ("text":
/// without references to variables); what has no effect; and what a pod cannot
/// do without and is not carried out, as all that is not named here.
constexpr char kKnown[] = R"({
  "restartPolicy": "", "terminationGracePeriodSeconds": "",
  "resourceClaims": "", "hostNetwork": "", "nodeName": "", "nodeSelector": "",
  "tolerations": "", "affinity": "", "schedulerName": "", "priority": "",
  "priorityClassName": "", "*": "ignored",
  "volumes": [{
    "name": "", "emptyDir": {"*": "ignored"},
    "hostPath": {"path": "", "*": "ignored"}, "*": "refused"}],
  "containers": [{
    "name": "", "image": "", "command": ["text"], "args": ["text"],
    "workingDir": "", "restartPolicy": "", "ports": "", "*": "ignored",
    "env": [{"name": "", "value": "text", "*": "refused"}],
    "envFrom": "refused", "securityContext": {"*": "ignored"},
    "resources": {
      "claims": "", "requests": "", "limits": {
        "cpu": "ignored", "memory": "ignored", "ephemeral-storage": "ignored",
        "*": ""}},
    "volumeMounts": [{
      "name": "", "mountPath": "", "readOnly": "", "*": "refused"}]}]})";

/// Compares what is given with what is known, by path.
void Review(const json& given, const json& known, const std::string& path,
            std::string* ignored, std::string* refused) {
  if (given.is_null()) return;  // In YAML a member without a value.
  if (known == "ignored") *ignored += " " + path;
  if (known == "refused") *refused += " " + path;
  if (known == "text" &&
      given.get_ref<const std::string&>().find("$(") != std::string::npos) {
    *refused += " " + path + " (references such as $(NAME))";
  }
  if (known.is_array()) {
    for (const json& one : given.get_ref<const json::array_t&>()) {
      const std::string name = one.is_object() ? one.value("name", "") : "";
      Review(one, known[0],
             name.empty() ? path : absl::StrCat(path, "[", name, "]"), ignored,
             refused);
    }
  }
  if (!known.is_object()) return;
  for (const auto& [key, value] : given.get_ref<const json::object_t&>()) {
    Review(value, known.at(known.contains(key) ? key : "*"),
           absl::StrCat(path, ".", key), ignored, refused);
  }
}

json ListIn(const json& object, const char* key) {
  return object.value(key, json::array());
}

/// There is no other network than the host's.
void PutNamespaces(cri::NamespaceOption* options) {
  options->set_network(cri::NODE);
  options->set_pid(cri::CONTAINER);
}

void PutSecurity(cri::LinuxContainerSecurityContext* to) {
  PutNamespaces(to->mutable_namespace_options());
  // What clients of CRI hide by default; the runtime hides nothing by itself.
  for (const char* path :
       {"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore",
        "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
        "/proc/timer_list", "/proc/timer_stats",
        "/sys/devices/virtual/powercap", "/sys/firmware"}) {
    to->add_masked_paths(path);
  }
  for (const char* path : {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                           "/proc/sysrq-trigger"}) {
    to->add_readonly_paths(path);
  }
}

/// `volumes`: where they are on the host.
cri::ContainerConfig ConfigOf(const json& container, const Texts& volumes) {
  cri::ContainerConfig config;
  config.mutable_metadata()->set_name(container.value("name", ""));
  config.mutable_image()->set_image(container.value("image", ""));
  config.set_working_dir(container.value("workingDir", ""));
  for (const json& word : ListIn(container, "command")) {
    config.add_command(word.get<std::string>());
  }
  for (const json& word : ListIn(container, "args")) {
    config.add_args(word.get<std::string>());
  }
  for (const json& variable : ListIn(container, "env")) {
    cri::KeyValue* to = config.add_envs();
    to->set_key(variable.value("name", ""));
    to->set_value(variable.value("value", ""));
  }
  for (const json& mount : ListIn(container, "volumeMounts")) {
    cri::Mount* to = config.add_mounts();
    to->set_container_path(mount.value("mountPath", ""));
    to->set_host_path(volumes.at(mount.value("name", "")));
    to->set_readonly(mount.value("readOnly", false));
  }
  PutSecurity(config.mutable_linux()->mutable_security_context());
  return config;
}

void PutSandbox(const json& metadata, const std::string& uid,
                cri::PodSandboxConfig* config) {
  const std::string name = metadata.value("name", "");
  const std::string ns = metadata.value("namespace", "default");
  config->mutable_metadata()->set_name(name);
  config->mutable_metadata()->set_namespace_(ns);
  config->mutable_metadata()->set_uid(uid);
  auto& labels = *config->mutable_labels();
  for (const auto& [key, value] : metadata.value("labels", Texts())) {
    labels[key] = value;
  }
  labels["io.kubernetes.pod.name"] = name;
  labels["io.kubernetes.pod.namespace"] = ns;
  labels["io.kubernetes.pod.uid"] = uid;
  PutNamespaces(config->mutable_linux()
                    ->mutable_security_context()
                    ->mutable_namespace_options());
}

void PutContainers(const json& spec, const std::filesystem::path& empty_dirs,
                   PodPlan* plan) {
  Texts volumes;
  for (const json& volume : ListIn(spec, "volumes")) {
    const std::string name = volume.value("name", "");
    volumes[name] = (empty_dirs / name).string();
    if (volume.contains("hostPath")) {
      volumes[name] = volume["hostPath"].value("path", "");
    } else {
      plan->empty_dirs.push_back(name);
    }
  }
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& one : ListIn(spec, list)) {
      const std::string name = one.value("name", "");
      cri::ContainerConfig& config = plan->containers[name];
      config = ConfigOf(one, volumes);
      *config.mutable_labels() = plan->sandbox.labels();
      (*config.mutable_labels())["io.kubernetes.container.name"] = name;
    }
  }
}

}  // namespace

absl::StatusOr<PodPlan> ReadPod(const std::string& text, const std::string& uid,
                                const std::filesystem::path& volumes) {
  // The library looked at what is about devices: the rest may have any type.
  try {
    const json pod = json::parse(text);
    const json& spec = pod.at("spec");
    json known = json::parse(kKnown);
    known["initContainers"] = known["containers"];
    PodPlan plan;
    std::string refused;
    Review(spec, known, "spec", &plan.ignored, &refused);
    if (!refused.empty()) {
      refused = "the pod needs what edge-kubelet does not do:" + refused;
      return absl::InvalidArgumentError(refused);
    }
    const auto decoded = devmgr::DecodeManifest(text, "pod");
    if (decoded.objects.empty()) {
      return absl::InvalidArgumentError("the manager cannot use the pod");
    }
    plan.pod = std::get<devmgr::Pod>(decoded.objects[0].object);
    plan.grace = std::chrono::seconds(
        std::max(0, spec.value("terminationGracePeriodSeconds", 30)));
    PutSandbox(pod.at("metadata"), uid, &plan.sandbox);
    PutContainers(spec, volumes, &plan);
    return plan;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace edge
