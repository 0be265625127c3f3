// SPDX-License-Identifier: Apache-2.0
#include "server/podresources/unread_answers.h"

#include "common/status.h"

namespace devmgr::podresources {

absl::StatusOr<std::shared_ptr<void>> UnreadAnswers::Take(
    const std::string& client, std::size_t bytes) {
  const MutexLock lock(kept_->mutex);
  const auto known = kept_->of_clients.find(client);
  if (known != kept_->of_clients.end()) {
    if (known->second.bytes + bytes > limits_.of_one) {
      return ResourceExhaustedError(
          "{} bytes of answers wait already for {} to read them, which is not "
          "to be more than {}",
          known->second.bytes, client, limits_.of_one);
    }
    if (kept_->of_all + bytes > limits_.of_all) {
      return ResourceExhaustedError(
          "{} bytes of answers wait already for clients to read them, which is "
          "not to be more than {}",
          kept_->of_all, limits_.of_all);
    }
  }
  OfClient& taken = kept_->of_clients[client];
  ++taken.answers;
  taken.bytes += bytes;
  kept_->of_all += bytes;
  return std::shared_ptr<void>(nullptr, [kept = kept_, client, bytes](void*) {
    const MutexLock lock_of_end(kept->mutex);
    const auto counted = kept->of_clients.find(client);
    counted->second.bytes -= bytes;
    if (--counted->second.answers == 0) kept->of_clients.erase(counted);
    kept->of_all -= bytes;
  });
}

}  // namespace devmgr::podresources
