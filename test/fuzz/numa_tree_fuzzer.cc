// SPDX-License-Identifier: Apache-2.0
//
// A tree of /sys, a file per line as `path=text`, where `\n` ends a line of the
// text: what is read of it is sound, and what is refused names a file. What is
// short below devices/system/node may stand without that.
#include <algorithm>
#include <string>
#include <string_view>

#include "fuzz/fuzz.h"
#include "support/fake_sysfs.h"
#include "topology/numa_tree.h"
#include "topology/tree_invariants.h"

namespace {

using devmgr::fuzz::Require;
using devmgr::fuzz::RequireReadable;
using devmgr::topology::NumaTree;

std::string TextOf(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line.substr(i).starts_with("\\n")) {
      text += '\n';
      ++i;
    } else {
      text += line[i];
    }
  }
  return text;
}

devmgr::FakeSysfs FilesOf(std::string_view input) {
  devmgr::FakeSysfs files;
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(input.size(), line.size() + 1));
    const std::size_t equals = line.find('=');
    if (equals == line.npos) continue;
    std::string path(line.substr(0, equals));
    if (!path.starts_with("bus/") && !path.starts_with("devices/")) {
      path.insert(0, "devices/system/node/");
    }
    files[path] = TextOf(line.substr(equals + 1));
  }
  return files;
}

void CheckTree(const NumaTree& tree) {
  Require(devmgr::topology::BrokenInvariant(tree).empty(),
          devmgr::topology::BrokenInvariant(tree).c_str());
  for (const std::string& warning : tree.warnings) RequireReadable(warning);
  if (!tree.distances) RequireReadable(tree.distance_problem);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto files = FilesOf({reinterpret_cast<const char*>(data), size});
  const auto tree = devmgr::topology::ReadNumaTree(files);
  if (!tree.ok()) {
    RequireReadable(devmgr::MessageOf(tree.status()));
    return 0;
  }
  CheckTree(*tree);
  const auto machine = devmgr::topology::MachineOf(
      *tree, {.policy = devmgr::topology::Policy::kRestricted,
              .prefer_closest = true,
              .max_numa_nodes = 64});
  Require(machine.ok() == tree->distances.has_value(),
          "closest nodes can be preferred where distances are known");
  const auto node = devmgr::topology::NumaNodeOfPciDevice(files, "0:0", *tree);
  if (!node.ok()) {
    RequireReadable(devmgr::MessageOf(node.status()));
  } else if (*node) {
    Require(tree->mask().Contains(**node), "a device is on a known node");
  }
  return 0;
}
