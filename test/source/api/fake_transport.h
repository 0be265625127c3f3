// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "source/api/transport.h"

namespace devmgr::apiserver {

/// A transport whose server is the test. Nothing happens by itself.
class FakeTransport : public Transport {
 public:
  struct Transfer {
    ApiRequest request;
    std::shared_ptr<const RequestCredentials> credentials;
    TransferEvents events;
  };

  TransferId Start(const ApiRequest& request,
                   std::shared_ptr<const RequestCredentials> credentials,
                   TransferEvents events) override {
    transfers[++last_] = {request, std::move(credentials), std::move(events)};
    return last_;
  }
  void Cancel(TransferId transfer) override { transfers.erase(transfer); }

  /// The one transfer whose target has `part` in it; 0 when there is none.
  TransferId Find(const std::string& part) const {
    TransferId found = 0;
    for (const auto& [id, transfer] : transfers) {
      if (transfer.request.target.find(part) == std::string::npos) continue;
      EXPECT_EQ(found, 0u) << "a second request with " << part;
      found = id;
    }
    return found;
  }
  void Begin(TransferId transfer, int code = 200) {
    const auto event = transfers.at(transfer).events.on_head;
    event({.code = code, .retry_after = {}});
  }
  void Send(TransferId transfer, const std::string& bytes) {
    const auto event = transfers.at(transfer).events.on_data;
    event(bytes);
  }
  void End(TransferId transfer, absl::Status status = absl::OkStatus()) {
    const auto event = transfers.at(transfer).events.on_end;
    transfers.erase(transfer);
    event(status);
  }
  /// Answers the request whose target has `part` in it. False: there is none.
  bool Answer(const std::string& part, const std::string& body,
              int code = 200) {
    const TransferId transfer = Find(part);
    if (transfer == 0) return false;
    Begin(transfer, code);
    if (transfers.count(transfer) != 0) Send(transfer, body);
    if (transfers.count(transfer) != 0) End(transfer);
    return true;
  }

  std::map<TransferId, Transfer> transfers;

 private:
  TransferId last_ = 0;
};

}  // namespace devmgr::apiserver
