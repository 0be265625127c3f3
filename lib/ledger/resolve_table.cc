// SPDX-License-Identifier: Apache-2.0
#include "ledger/resolve_table.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace devmgr::ledger {
namespace {

std::string WhyNot(const state::PodRecord& pod) {
  switch (pod.phase) {
    case state::PodPhase::kReady:
      return "prepared in another boot, to be prepared again";
    case state::PodPhase::kPreparing:
      if (pod.imported) {
        return "imported from the kubelet, to be shown by the source";
      }
      return "its claims are being prepared";
    case state::PodPhase::kAllocating:
      return "its devices are being allocated";
    case state::PodPhase::kAdmitted:
      return "admitted, to be prepared";
    case state::PodPhase::kRejected:
      return "rejected: " + pod.message;
    case state::PodPhase::kReleasing:
      return "being released";
    case state::PodPhase::kWaiting:
      break;
  }
  return "waiting";
}

}  // namespace

void ResolveTable::Put(const state::PodRecord& pod,
                       const std::string& boot_id) {
  auto cell = std::make_shared<Cell>();
  cell->name = pod.name.ToString();
  if (pod.phase == state::PodPhase::kReady && pod.boot_id == boot_id) {
    cell->answer = pod.answer;
  } else {
    cell->why = WhyNot(pod);
  }
  MutexLock lock(writing_);
  const auto old = CellOf(pod.uid);
  cell->was_read = old != nullptr ? old->was_read
                                  : std::make_shared<std::atomic<bool>>(false);
  Replace(pod.uid, std::move(cell));
}

void ResolveTable::Erase(const PodUid& uid) {
  MutexLock lock(writing_);
  Replace(uid, nullptr);
}

void ResolveTable::Explain(const PodUid& uid, const std::string& why) {
  MutexLock lock(writing_);
  const auto old = CellOf(uid);
  if (old == nullptr || old->answer != nullptr || old->why == why) return;
  auto cell = std::make_shared<Cell>(*old);
  cell->why = why;
  Replace(uid, std::move(cell));
}

void ResolveTable::Replace(const PodUid& uid,
                           std::shared_ptr<const Cell> cell) {
  auto& shard = const_cast<Shard&>(ShardOf(uid));
  std::shared_ptr<const Cells> old;
  {
    MutexLock lock(shard.mutex);
    old = shard.cells;
  }
  auto cells = old ? std::make_shared<Cells>(*old) : std::make_shared<Cells>();
  if (cell != nullptr) {
    (*cells)[uid] = std::move(cell);
  } else {
    cells->erase(uid);
  }
  // `old` outlives the lock: its last reference must not be dropped under it.
  MutexLock lock(shard.mutex);
  shard.cells = std::move(cells);
}

std::shared_ptr<const ResolveTable::Cell> ResolveTable::CellOf(
    const PodUid& uid) const {
  const Shard& shard = ShardOf(uid);
  std::shared_ptr<const Cells> cells;
  {
    MutexLock lock(shard.mutex);
    cells = shard.cells;
  }
  if (cells == nullptr) return nullptr;
  const auto cell = cells->find(uid);
  return cell != cells->end() ? cell->second : nullptr;
}

absl::StatusOr<std::shared_ptr<const PodDevices>> ResolveTable::Find(
    const PodUid& uid) const {
  const auto cell = CellOf(uid);
  if (cell == nullptr) {
    return NotFoundError("pod with UID '{}' is not known", uid.value);
  }
  if (cell->answer == nullptr) {
    return UnavailableError("pod '{}' is not ready: {}", cell->name, cell->why);
  }
  // Looked at first, so that readers do not take the line from each other.
  std::atomic<bool>& was_read = *cell->was_read;
  if (!was_read.load(std::memory_order_relaxed)) was_read.store(true);
  return cell->answer;
}

bool ResolveTable::WasRead(const PodUid& uid) const {
  const auto cell = CellOf(uid);
  return cell != nullptr && cell->was_read->load();
}

absl::StatusOr<std::shared_ptr<const ContainerDevices>> ResolveTable::Find(
    const PodUid& uid, const ContainerName& container) const {
  DEVMGR_ASSIGN_OR_RETURN(const auto answer, Find(uid));
  const auto& containers = answer->containers;
  const auto found =
      std::find_if(containers.begin(), containers.end(),
                   [&](const auto& c) { return c.name == container; });
  if (found == containers.end()) {
    return NotFoundError("pod '{}' has no container '{}'",
                         answer->name.ToString(), container);
  }
  if (found->devices_released) {
    return FailedPreconditionError(
        "container '{}' of pod '{}' gave its devices back when the init "
        "containers had ended; it gets others before it starts again",
        container, answer->name.ToString());
  }
  return std::shared_ptr<const ContainerDevices>(answer, &*found);
}

}  // namespace devmgr::ledger
