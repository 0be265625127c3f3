// SPDX-License-Identifier: Apache-2.0
#include "upkeep/node_news.h"

#include "common/feature_gates.h"
#include "common/status.h"

namespace devmgr::upkeep {

void NodeNews::OnOpened(const RecoveryInfo& recovery,
                        const std::map<std::string, bool>& gates) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!recovery.closed_cleanly) {
    Report(recovery.damaged, "LedgerRecovered", recovery.message);
    Log(recovery.damaged ? LogLevel::kError : LogLevel::kInfo,
        recovery.message);
  }
  // What a kubelet's list of gates has that does not hold here.
  for (const auto& [reason, message] :
       {std::pair("FeatureGatesWithoutEffect", IdleGatesText(gates)),
        std::pair("FeatureGatesAgainstLock", LockedGatesText(gates))}) {
    if (message.empty()) continue;
    Report(true, reason, message);
    Log(LogLevel::kWarning, message);
  }
}

void NodeNews::OnLedger(const absl::Status& health) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (health.ok()) {
    return Report(false, "LedgerWritable",
                  "the ledger was opened again and takes decisions");
  }
  parts_.metrics.OnLedgerWriteFailed();
  Report(true, "LedgerWriteFailed", MessageOf(health));
}

void NodeNews::Report(bool warning, const char* reason,
                      const std::string& message) {
  parts_.events.Add(warning, reason, "Node", {"", parts_.node_name}, message);
}

void NodeNews::Log(LogLevel level, const std::string& message) {
  if (parts_.log) parts_.log(level, message);
}

}  // namespace devmgr::upkeep
