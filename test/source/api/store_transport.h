// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apistore/api_request.h"
#include "apistore/object_meta.h"
#include "apistore/store.h"
#include "source/api/transport.h"

namespace devmgr::apiserver {

/// A transport to a store in this process. Nothing moves by itself: the test
/// has a request answered, its bytes delivered, as many as it likes, and its
/// connection cut.
class StoreTransport : public Transport {
 public:
  explicit StoreTransport(apistore::Store& store) : store_(store) {}

  TransferId Start(const ApiRequest& request,
                   std::shared_ptr<const RequestCredentials> /*credentials*/,
                   TransferEvents events) override {
    Transfer transfer;
    transfer.target = request.target;
    transfer.events = std::move(events);
    transfers_.emplace(++last_, std::move(transfer));
    return last_;
  }
  void Cancel(TransferId transfer) override { transfers_.erase(transfer); }

  std::vector<TransferId> Open() const {
    std::vector<TransferId> ids;
    for (const auto& [id, transfer] : transfers_) ids.push_back(id);
    return ids;
  }
  bool IsAnswered(TransferId id) const { return transfers_.at(id).answered; }

  /// Has the server do what is asked for, and delivers the head.
  void Answer(TransferId id) {
    Transfer& transfer = transfers_.at(id);
    transfer.answered = true;
    Send(id, Serve(transfer));
  }
  /// Another answer than the server would give.
  void Refuse(TransferId id, const apistore::ApiError& error) {
    transfers_.at(id).answered = true;
    Send(id, Take(transfers_.at(id), apistore::Refuse(error)));
  }
  /// Delivers up to `most` bytes of what was answered, and the end when that
  /// was all. False: there was nothing to deliver.
  bool Deliver(TransferId id, std::size_t most) {
    Transfer& transfer = transfers_.at(id);
    if (!transfer.answered) return false;
    if (transfer.stream != nullptr) {
      if (transfer.bytes.empty() && transfer.stream->overflowed()) {
        End(id);
        return true;
      }
      transfer.bytes += transfer.stream->Take(most);
      if (transfer.bytes.empty()) return false;
    }
    const std::string part = transfer.bytes.substr(0, most);
    transfer.bytes.erase(0, most);
    const auto on_data = transfer.events.on_data;
    if (!part.empty()) on_data(part);
    const auto found = transfers_.find(id);
    if (found != transfers_.end() && found->second.bytes.empty() &&
        found->second.stream == nullptr) {
      End(id);
    }
    return true;
  }
  void Cut(TransferId id) { End(id, absl::UnavailableError("cut")); }
  /// The server ends it, as it does with watches after their time.
  void EndInOrder(TransferId id) { End(id); }

 private:
  struct Transfer {
    std::string target;
    TransferEvents events;
    bool answered = false;
    std::string bytes;
    std::shared_ptr<apistore::WatchStream> stream;
  };

  static ResponseHead Take(Transfer& transfer, const apistore::Answer& answer) {
    transfer.bytes = apistore::Dump(answer.body);
    ResponseHead head{.code = answer.code, .retry_after = {}};
    if (answer.retry_after_seconds > 0) {
      head.retry_after = std::chrono::seconds(answer.retry_after_seconds);
    }
    return head;
  }
  ResponseHead Serve(Transfer& transfer) {
    if (const auto found =
            apistore::Discover(store_, transfer.target, "v1.36.0")) {
      return Take(transfer, *found);
    }
    const auto read = apistore::ReadApiRequest(store_, "GET", transfer.target);
    if (const auto* error = std::get_if<apistore::ApiError>(&read)) {
      return Take(transfer, apistore::Refuse(*error));
    }
    const auto& request = std::get<apistore::ApiRequest>(read);
    if (request.verb != apistore::Verb::kWatch) {
      return Take(transfer, apistore::ServeRequest(store_, request, {}, 0));
    }
    auto watch =
        store_.Watch(request.target, apistore::WatchOptionsOf(request));
    if (const auto* answer = std::get_if<apistore::Answer>(&watch)) {
      return Take(transfer, *answer);
    }
    transfer.stream =
        std::get<std::shared_ptr<apistore::WatchStream>>(std::move(watch));
    return {.code = 200, .retry_after = {}};
  }
  void Send(TransferId id, const ResponseHead& head) {
    const auto on_head = transfers_.at(id).events.on_head;
    on_head(head);
  }
  void End(TransferId id, const absl::Status& status = absl::OkStatus()) {
    const auto on_end = transfers_.at(id).events.on_end;
    transfers_.erase(id);
    on_end(status);
  }

  apistore::Store& store_;
  std::map<TransferId, Transfer> transfers_;
  TransferId last_ = 0;
};

}  // namespace devmgr::apiserver
