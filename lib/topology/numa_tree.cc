// SPDX-License-Identifier: Apache-2.0
#include "topology/numa_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include "api/quote.h"
#include "common/numa_nodes.h"
#include "common/status.h"

namespace devmgr::topology {
namespace {

using api::Quoted;

constexpr std::string_view kNodes = "devices/system/node";
constexpr std::string_view kAllCpus = "devices/system/cpu/online";
constexpr std::size_t kMostCpus = 65'536;
constexpr std::size_t kMostWarnings = 32;
constexpr std::uint32_t kLocal = 10;
constexpr std::uint32_t kUnreachable = 255;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  return text;
}

template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

/// The number in `node12`; digits only, and no leading zeros.
std::optional<std::int64_t> IdOfName(std::string_view name) {
  if (!name.starts_with("node")) return std::nullopt;
  name.remove_prefix(4);
  if (name.empty() || (name.front() == '0' && name.size() > 1)) {
    return std::nullopt;
  }
  const auto id = NumberOf<std::int64_t>(name);
  return id && *id >= 0 ? id : std::nullopt;
}

std::string FileOf(std::int64_t node, std::string_view name) {
  return fmt::format("{}/node{}/{}", kNodes, node, name);
}

/// No value when there is no such file.
absl::StatusOr<std::optional<std::string>> ReadIfThere(const SysfsFiles& files,
                                                       std::string_view path) {
  auto text = files.Read(path);
  if (text.ok()) return std::optional<std::string>(*std::move(text));
  if (absl::IsNotFound(text.status())) return std::optional<std::string>();
  return text.status();
}

absl::StatusOr<std::vector<std::int64_t>> NumbersOf(std::string_view path,
                                                    std::string_view text,
                                                    std::size_t most) {
  auto numbers = ParseNumberList(Trimmed(text), most);
  if (!numbers) {
    return InvalidArgumentError("{} has {}, which is no list of numbers", path,
                                Quoted(Trimmed(text)));
  }
  return *std::move(numbers);
}

class TreeReader {
 public:
  explicit TreeReader(const SysfsFiles& files) : files_(files) {}

  absl::StatusOr<NumaTree> Read() {
    DEVMGR_RETURN_IF_ERROR(ReadIds());
    if (ids_.empty()) {
      DEVMGR_RETURN_IF_ERROR(MakeUpOneNode());
      return std::move(tree_);
    }
    for (const std::int64_t id : ids_) DEVMGR_RETURN_IF_ERROR(ReadNode(id));
    if (cpus_.empty()) Warn("none of the NUMA nodes has CPUs");
    ReadDistances();
    return std::move(tree_);
  }

 private:
  void Warn(std::string text) {
    if (tree_.warnings.size() < kMostWarnings) {
      tree_.warnings.push_back(std::move(text));
    }
  }

  /// The nodes that have a folder, by number: the kernel lists node10 before
  /// node2.
  absl::StatusOr<std::set<std::int64_t>> Folders() const {
    const auto names = files_.List(kNodes);
    if (absl::IsNotFound(names.status())) return std::set<std::int64_t>();
    if (!names.ok()) return names.status();
    std::set<std::int64_t> folders;
    for (const std::string& name : *names) {
      if (const auto id = IdOfName(name)) folders.insert(*id);
    }
    return folders;
  }

  absl::Status ReadIds() {
    const auto folders = Folders();
    if (!folders.ok()) return folders.status();
    const std::string path = fmt::format("{}/online", kNodes);
    const auto online = ReadIfThere(files_, path);
    if (!online.ok()) return online.status();
    if (!*online) {
      if (!folders->empty()) Warn(path + " is absent: all nodes are taken");
      ids_.assign(folders->begin(), folders->end());
      return CheckIds();
    }
    auto ids = NumbersOf(path, **online, kMostCpus);
    if (!ids.ok()) return ids.status();
    ids_ = *std::move(ids);
    if (ids_.empty() && !folders->empty()) {
      return InvalidArgumentError("{} lists no node, and there is {}/node{}",
                                  path, kNodes, *folders->begin());
    }
    DEVMGR_RETURN_IF_ERROR(CheckIds());
    return CheckFolders(path, *folders);
  }

  absl::Status CheckIds() const {
    if (ids_.empty() || ids_.back() < NumaMask::kMaxNodes) {
      return absl::OkStatus();
    }
    return InvalidArgumentError(
        "there is a NUMA node {} in {}: ids above {} are not supported",
        ids_.back(), kNodes, NumaMask::kMaxNodes - 1);
  }

  absl::Status CheckFolders(const std::string& online,
                            const std::set<std::int64_t>& folders) {
    for (const std::int64_t id : ids_) {
      if (folders.contains(id)) continue;
      return InvalidArgumentError("{} lists node {}, and there is no {}/node{}",
                                  online, id, kNodes, id);
    }
    for (const std::int64_t id : folders) {
      if (std::binary_search(ids_.begin(), ids_.end(), id)) continue;
      Warn(fmt::format("NUMA node {} is not online", id));
    }
    return absl::OkStatus();
  }

  absl::Status MakeUpOneNode() {
    NumaNode node;
    const auto text = ReadIfThere(files_, kAllCpus);
    if (!text.ok()) return text.status();
    if (*text) {
      auto cpus = NumbersOf(kAllCpus, **text, kMostCpus);
      if (!cpus.ok()) return cpus.status();
      node.cpus = *std::move(cpus);
    }
    tree_.nodes.push_back(std::move(node));
    tree_.synthetic = true;
    tree_.distances.emplace();
    tree_.distances->Set(0, 0, kLocal);
    return absl::OkStatus();
  }

  absl::Status ReadNode(std::int64_t id) {
    NumaNode node;
    node.id = static_cast<int>(id);
    DEVMGR_RETURN_IF_ERROR(ReadCpus(node));
    ReadMemory(node);
    ReadHugepages(node);
    tree_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status ReadCpus(NumaNode& node) {
    const std::string path = FileOf(node.id, "cpulist");
    const auto text = ReadIfThere(files_, path);
    if (!text.ok()) return text.status();
    if (*text) {
      auto cpus = NumbersOf(path, **text, kMostCpus);
      if (!cpus.ok()) return cpus.status();
      node.cpus = *std::move(cpus);
    }
    if (node.cpus.empty()) {
      Warn(fmt::format("NUMA node {} has no CPUs{}", node.id,
                       *text ? "" : ": " + path + " is absent"));
    }
    for (const std::int64_t cpu : node.cpus) {
      const auto [other, is_first] = cpus_.try_emplace(cpu, node.id);
      if (is_first) continue;
      return InvalidArgumentError("{} lists CPU {}, which node {} has, too",
                                  path, cpu, other->second);
    }
    return absl::OkStatus();
  }

  /// The line is `Node 0 MemTotal:  16384 kB`.
  void ReadMemory(NumaNode& node) {
    const std::string path = FileOf(node.id, "meminfo");
    const auto text = files_.Read(path);
    if (!text.ok()) {
      Warn(fmt::format("{} cannot be read: {}", path,
                       api::Readable(MessageOf(text.status()), 200)));
      return;
    }
    std::string_view rest = *text;
    const std::size_t key = rest.find("MemTotal:");
    if (key != rest.npos) {
      rest.remove_prefix(key + 9);
      rest = Trimmed(rest.substr(0, rest.find('\n')));
      while (rest.starts_with(' ')) rest.remove_prefix(1);
      const auto kib = NumberOf<std::uint64_t>(rest.substr(0, rest.find(' ')));
      if (kib && *kib <= UINT64_MAX / 1024 && rest.ends_with(" kB")) {
        node.memory_bytes = *kib * 1024;
        return;
      }
    }
    Warn(path + " has no line with MemTotal in kB");
  }

  void ReadHugepages(NumaNode& node) {
    const std::string folder = FileOf(node.id, "hugepages");
    auto names = files_.List(folder);
    if (!names.ok()) return;  // A kernel without huge pages.
    std::sort(names->begin(), names->end());
    for (std::string_view name : *names) {
      const std::string path = fmt::format("{}/{}/nr_hugepages", folder, name);
      if (!name.starts_with("hugepages-") || !name.ends_with("kB")) continue;
      name.remove_prefix(10);
      name.remove_suffix(2);
      const auto kib = NumberOf<std::uint64_t>(name);
      const auto text = files_.Read(path);
      const auto pages =
          text.ok() ? NumberOf<std::uint64_t>(Trimmed(*text)) : std::nullopt;
      if (kib && pages) {
        node.hugepages.emplace(*kib, *pages);
      } else {
        Warn(api::Readable(path, 200) + " has no number of pages");
      }
    }
  }

  // Distances are of use for one option only: without them all else works.

  void ReadDistances() {
    NumaDistances distances;
    for (const std::int64_t id : ids_) {
      const std::string path = FileOf(id, "distance");
      std::string problem = ReadRow(path, static_cast<int>(id), distances);
      if (problem.empty()) continue;
      Warn("distances of NUMA nodes are not known: " + problem);
      tree_.distance_problem = std::move(problem);
      return;
    }
    WarnOfOddDistances(distances);
    tree_.distances = std::move(distances);
  }

  /// Why there is none, or an empty text. A row has a number per node that is
  /// online; a second form, of other tools, one per id up to the highest.
  std::string ReadRow(const std::string& path, int from,
                      NumaDistances& distances) const {
    const auto text = files_.Read(path);
    if (!text.ok()) {
      return fmt::format("{} cannot be read: {}", path,
                         api::Readable(MessageOf(text.status()), 200));
    }
    std::vector<std::uint32_t> row;
    for (std::string_view rest = Trimmed(*text); !rest.empty();) {
      const std::string_view item = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      const auto distance = NumberOf<std::uint32_t>(item);
      if (!distance || *distance < kLocal || *distance > kUnreachable) {
        return fmt::format(
            "{} has {}, and a distance is a number from 10 to "
            "255",
            path, Quoted(item));
      }
      row.push_back(*distance);
      if (row.size() > NumaMask::kMaxNodes) break;
    }
    const auto highest = static_cast<std::size_t>(ids_.back()) + 1;
    if (row.size() != ids_.size() && row.size() != highest) {
      return fmt::format("{} has {} numbers, and {} nodes are online", path,
                         row.size(), ids_.size());
    }
    const bool by_position = row.size() == ids_.size();
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      const auto to = static_cast<std::size_t>(ids_[i]);
      distances.Set(from, static_cast<int>(to), row[by_position ? i : to]);
    }
    return "";
  }

  void WarnOfOddDistances(const NumaDistances& distances) {
    for (const NumaNode& from : tree_.nodes) {
      if (distances.Of(from.id, from.id) != kLocal) {
        Warn(fmt::format("NUMA node {} is {} from itself, and 10 is local",
                         from.id, distances.Of(from.id, from.id)));
      }
      for (const NumaNode& to : tree_.nodes) {
        const auto there = distances.Of(from.id, to.id);
        const auto back = distances.Of(to.id, from.id);
        if (from.id >= to.id || there == back) continue;
        Warn(fmt::format("NUMA node {} is {} from node {}, which is {} from it",
                         to.id, there, from.id, back));
      }
    }
  }

  const SysfsFiles& files_;
  std::vector<std::int64_t> ids_;     ///< Ascending.
  std::map<std::int64_t, int> cpus_;  ///< And the node of each.
  NumaTree tree_;
};

}  // namespace

NumaMask NumaTree::mask() const {
  NumaMask mask;
  for (const NumaNode& node : nodes) mask = mask | NumaMask::OfNode(node.id);
  return mask;
}

std::vector<std::int64_t> NumaTree::ids() const { return mask().Nodes(); }

absl::StatusOr<NumaTree> ReadNumaTree(const SysfsFiles& files) {
  return TreeReader(files).Read();
}

absl::StatusOr<NumaMachine> MachineOf(const NumaTree& tree,
                                      const Options& options) {
  DEVMGR_RETURN_IF_ERROR(
      CheckNodeCount(options, static_cast<std::int64_t>(tree.nodes.size())));
  const bool has_use = options.policy != Policy::kNone;
  if (has_use && options.prefer_closest && !tree.distances) {
    return FailedPreconditionError(
        "option \"prefer-closest-numa-nodes\": distances of NUMA nodes are not "
        "known: {}",
        tree.distance_problem);
  }
  return NumaMachine{tree.mask(), tree.distances.value_or(NumaDistances())};
}

absl::StatusOr<std::optional<int>> NumaNodeOfPciDevice(const SysfsFiles& files,
                                                       std::string_view address,
                                                       const NumaTree& tree) {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF:.";
  if (address.find_first_not_of(kDigits) != address.npos ||
      address.find(':') == address.npos) {
    return InvalidArgumentError("{} is no address of a PCI device",
                                Quoted(address));
  }
  const std::string path = fmt::format("bus/pci/devices/{}/numa_node", address);
  const auto text = files.Read(path);
  if (!text.ok()) return text.status();
  const auto node = NumberOf<std::int64_t>(Trimmed(*text));
  if (node == -1) return std::optional<int>();
  if (!node || !tree.mask().Contains(*node)) {
    return InvalidArgumentError(
        "{} has {}, which is no NUMA node of this machine", path,
        Quoted(Trimmed(*text)));
  }
  return std::optional<int>(static_cast<int>(*node));
}

std::optional<int> ShownNode(std::optional<int> node, const NumaTree& tree) {
  if (!node && tree.nodes.size() == 1) return tree.nodes.front().id;
  return node;
}

}  // namespace devmgr::topology
