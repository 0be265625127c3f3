// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/luck.h"

namespace devmgr::model {

inline constexpr int kPods = 6;
inline constexpr int kClaims = 6;
inline const std::vector<std::string> kDrivers = {
    "a.example.com", "b.example.com", "c.example.com"};
inline constexpr char kResource[] = "example.com/gpu";

/// A source whose snapshots are heard of at once, on the publishing thread.
class DirectSource final : public ObjectSource {
 public:
  void Publish(ObjectSnapshot snapshot) {
    snapshot_ = std::make_shared<const ObjectSnapshot>(std::move(snapshot));
    if (changed_) changed_();
  }
  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    return snapshot_;
  }
  void Subscribe(std::function<void()> changed) override {
    changed_ = std::move(changed);
  }
  void Unsubscribe() override { changed_ = nullptr; }
  std::string Describe() const override { return "objects of a model"; }

 private:
  std::shared_ptr<const ObjectSnapshot> snapshot_ =
      std::make_shared<const ObjectSnapshot>();
  std::function<void()> changed_;
};

/// The objects that people and a control plane write: a few pods that share a
/// few claims, by name, in namespace `ns`. An object that does not change stays
/// the same pointer. Each method says what it did.
class Objects {
 public:
  using PodObject = std::shared_ptr<const Pod>;
  using ClaimObject = std::shared_ptr<const ResourceClaim>;

  std::string PublishPod(std::size_t pod, Luck luck);
  std::string ChangePod(std::size_t pod, Luck luck);
  std::string WithdrawPod(std::size_t pod);
  std::string PublishClaim(std::size_t claim, Luck luck);
  std::string ReallocateClaim(std::size_t claim, Luck luck);
  std::string ReserveClaim(std::size_t claim, Luck luck);
  std::string WithdrawClaim(std::size_t claim);
  std::string Scan(Luck luck);
  /// From now on the source sees everything.
  void ScanAll() { hidden_.clear(); }
  void Clear();

  ObjectSnapshot Snapshot() const;

  const std::map<ObjectName, PodObject>& pods() const { return pods_; }
  const std::map<ObjectName, ClaimObject>& claims() const { return claims_; }
  bool IsMalformed(const ObjectName& pod) const {
    return malformed_.contains(pod);
  }
  /// What was ever published under this name and UID (empty: without one),
  /// the newest last.
  const std::vector<PodObject>& Versions(const ObjectName& name,
                                         const std::string& uid) const;

 private:
  void Put(const Pod& pod);
  bool Restore(const ObjectName& name);
  void Put(const ResourceClaim& claim);
  void MakeClaim(const ObjectName& name, Luck& luck);
  void Reserve(const ObjectName& claim, const ObjectMeta& pod);
  void Own(const ObjectName& claim, const ObjectMeta& pod);
  std::string NextUid(const ObjectName& name);

  std::map<ObjectName, PodObject> pods_;
  std::map<ObjectName, std::shared_ptr<const MalformedPod>> malformed_;
  std::map<ObjectName, ClaimObject> claims_;
  std::map<ObjectName, PodObject> withdrawn_;
  std::set<ObjectName> hidden_;  ///< Not seen by the source; not complete then.
  std::map<std::pair<ObjectName, std::string>, std::vector<PodObject>>
      versions_;
  int made_ = 0;
};

}  // namespace devmgr::model
