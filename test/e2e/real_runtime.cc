// SPDX-License-Identifier: Apache-2.0
#include "e2e/real_runtime.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/read_all.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLook[] = R"sh(
env
for node in /dev/tpu-*; do
  [ ! -c "$node" ] || stat -c 'node %n %t:%T' "$node"
done
for folder in /run/devices/tpu-*; do
  [ ! -e "$folder" ] || echo "mounted $folder"
done
)sh";

}  // namespace

const char kRuntimePod[] = R"(apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {extendedResourceName: example.com/gpu}
---
apiVersion: v1
kind: Pod
metadata: {name: p, uid: 5a1f3c4e-0000-4000-8000-000000000021}
spec:
  containers:
  - name: c
    resources:
      claims: [{name: x}]
      limits: {example.com/tpu: "1", example.com/gpu: "1"}
  - name: plain
  resourceClaims: [{name: x, resourceClaimName: own}]
status:
  extendedResourceClaimStatus:
    resourceClaimName: special
    requestMapping:
    - {containerName: c, extendedResourceName: example.com/gpu, requestName: r}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: own, uid: own-uid}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}
status:
  allocation: {devices: {results: [
    {request: r, driver: gpu.example.com, pool: pool-0, device: gpu-0}]}}
  reservedFor: [{resource: pods, name: p,
                 uid: 5a1f3c4e-0000-4000-8000-000000000021}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: special
  uid: special-uid
  annotations: {resource.kubernetes.io/extended-resource-claim: "true"}
  ownerReferences:
  - {apiVersion: v1, kind: Pod, name: p, controller: true,
     uid: 5a1f3c4e-0000-4000-8000-000000000021}
spec:
  devices: {requests: [{name: r, exactly: {deviceClassName: gpu.example.com}}]}
status:
  allocation: {devices: {results: [
    {request: r, driver: gpu.example.com, pool: pool-0, device: gpu-1}]}}
  reservedFor: [{resource: pods, name: p,
                 uid: 5a1f3c4e-0000-4000-8000-000000000021}]
)";

pid_t SpawnProgram(const std::vector<std::string>& words,
                   const std::filesystem::path& output) {
  std::vector<char*> argv;
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

int RunProgram(const std::vector<std::string>& words, std::string* output) {
  const TempFolder folder;
  const pid_t pid = SpawnProgram(words, folder.path() / "out");
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return -1;
  *output = ReadAll(folder.path() / "out");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string WhyNoContainers(const std::vector<std::string>& programs) {
  if (::geteuid() != 0) return "containers need root";
  std::vector<std::string> all = programs;
  all.push_back("busybox");
  for (const std::string& program : all) {
    std::string output;
    if (RunProgram({"sh", "-c", "command -v " + program}, &output) != 0) {
      return program + " is not installed";
    }
  }
  return "";
}

std::string MakeRootFolder(const std::filesystem::path& folder) {
  static constexpr char kScript[] = R"sh(
set -e
mkdir -p "$1"
cd "$1"
mkdir bin dev proc sys tmp etc run
cp "$(command -v busybox)" bin/busybox
for name in sh cat ls env sed sleep echo test stat; do
  ln -s busybox "bin/$name"
done
)sh";
  std::string output;
  const int code =
      RunProgram({"sh", "-c", kScript, "sh", folder.string()}, &output);
  return code == 0 ? "" : "no root file system: " + output;
}

std::vector<std::string> LookingCommand() { return {"/bin/sh", "-c", kLook}; }

::testing::Matcher<std::string> HasAllDevices() {
  return AllOf(HasSubstr("EXAMPLE_COM_TPU=tpu-"),
               HasSubstr("DEVMGR_FAKE_DEVICE_own_uid_0=pool-0/gpu-0"),
               HasSubstr("DEVMGR_FAKE_DEVICE_special_uid_0=pool-0/gpu-1"),
               HasSubstr("node /dev/tpu-"), HasSubstr(" 1:3"),
               HasSubstr("mounted"));
}

::testing::Matcher<std::string> HasNoDevices() {
  return AllOf(HasSubstr("PATH="), Not(HasSubstr("EXAMPLE_COM")),
               Not(HasSubstr("DEVMGR_FAKE")), Not(HasSubstr("node /dev")),
               Not(HasSubstr("mounted")));
}

}  // namespace devmgr
