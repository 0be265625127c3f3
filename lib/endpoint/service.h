// SPDX-License-Identifier: Apache-2.0
//
// What is answered to a driver: the store, with the rights and limits of its
// clients around it. No sockets and no threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apistore/store.h"
#include "endpoint/endpoint.h"
#include "endpoint/journal.h"
#include "endpoint/limits.h"
#include "endpoint/rights.h"

namespace devmgr::endpoint {

/// A request as it came, of a driver that has shown its token.
struct ServiceRequest {
  std::string_view method;
  std::string_view target;
  std::string_view content_type;
  std::string_view accept;
  std::string_view body;
  std::string driver;
};

/// A watch that is to be opened.
struct OpenedWatch {
  std::shared_ptr<apistore::WatchStream> stream;
  bool bookmarks = false;
  std::int64_t timeout_seconds = 0;
};

/// Lives on one thread.
class Service {
 public:
  Service(EndpointOptions options, Journal& journal);
  ~Service();

  /// Before anything else.
  absl::Status Replay();

  /// `watches`: how many the driver has open.
  std::variant<apistore::Answer, OpenedWatch> Serve(
      const ServiceRequest& request, TimePoint now, std::size_t watches);
  /// What is answered without a token: whether the endpoint lives.
  std::optional<apistore::Answer> ServeOpen(std::string_view target) const;

  absl::Status SetObjects(const std::string& kind,
                          const std::vector<std::string>& objects);
  absl::Status PutObject(const std::string& object);
  std::vector<std::string> Objects(const std::string& kind) const;
  absl::StatusOr<std::size_t> DeleteSlices(const std::string& driver);

  std::uint64_t revision() const { return store_->revision(); }
  EndpointCounts& counts() { return counts_; }

 private:
  std::unique_ptr<apistore::Store> MakeStore(std::uint64_t revision);
  std::unique_ptr<apistore::Store> MakeEventStore();
  std::int64_t Now() const;
  absl::Status Persist(const apistore::StoreRecord& record);
  absl::Status Record(const JournalEntry& entry, bool is_claim);
  absl::Status Append(const JournalEntry& entry, bool is_claim);
  /// Makes sure that the next run begins above that revision.
  absl::Status ReserveAbove(std::uint64_t revision);

  std::variant<apistore::Answer, OpenedWatch> ServeObjects(
      const ServiceRequest& request, const apistore::ApiRequest& read,
      std::size_t watches);
  std::variant<apistore::Answer, OpenedWatch> Watch(
      const apistore::ApiRequest& request, const std::string& driver,
      std::size_t watches);
  apistore::Answer ServeEvent(const ServiceRequest& request,
                              const apistore::ApiRequest& read,
                              const std::string& body);
  apistore::Answer ServeReview(const ServiceRequest& request);
  void DropOldEvents(const apistore::ResourceType& type);
  /// The body as JSON, whatever form it came in.
  std::variant<apistore::ApiError, std::string> BodyOf(
      const ServiceRequest& request, const apistore::ApiRequest* read,
      std::vector<std::string>& warnings);
  std::variant<apistore::ApiError, std::string> DropUnknown(
      std::string_view text, const apistore::ApiRequest& read,
      std::vector<std::string>& warnings);

  /// `key`: also of an object that is refused; without a name if it has none.
  absl::Status Publish(apistore::Json object, apistore::ObjectKey& key);
  const apistore::ResourceType* TypeOf(const std::string& kind) const;

  const EndpointOptions options_;
  Journal& journal_;
  const Rights rights_;
  std::unique_ptr<apistore::Store> store_;
  /// Events are kept in memory only: their versions are their own.
  std::unique_ptr<apistore::Store> events_;
  std::map<std::string, RequestRate> rates_;
  EndpointCounts counts_;
  /// Claims that are durable, or may be, as drivers have said something in
  /// them. All others are published anew after a restart.
  std::set<std::string> durable_claims_;
  /// Revisions below this one need not be durable with what they are of.
  std::uint64_t reserved_ = 0;
  /// A write has failed: the next run may have what this one does not show.
  bool is_in_doubt_ = false;
  /// The driver whose request is being served; empty for those of the owner.
  std::string driver_;
};

}  // namespace devmgr::endpoint
