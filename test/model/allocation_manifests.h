// SPDX-License-Identifier: Apache-2.0
//
// Manifests of the third model: classes, templates, claims that pods share, and
// slices. Pods and claims of a name that starts like a class want devices of
// it.
#pragma once

#include <devmgr/host.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace devmgr::model {

inline constexpr int kMostGpus = 4;  ///< Of a driver.
/// Class `N` has the devices of driver `N.example.com`, which class `any` has
/// all of.
inline const std::vector<std::string> kPublishers = {"a", "b"};
inline const std::vector<std::string> kClasses = {"a", "b", "any"};
/// Claims that pods share.
inline const std::vector<std::string> kShared = {"s0", "s1"};

/// What a driver publishes.
struct Pool {
  int generation = 1;
  int devices = kMostGpus;
  bool complete = true;
};

std::string DriverName(const std::string& publisher);
std::string ClassText(const std::string& name);
/// The template of this name wants two devices of `any`, the others one of
/// their class.
std::string TemplateText(const std::string& name);
std::string SharedClaimText(const std::string& name, int incarnation);
std::string SliceText(const std::string& publisher, const Pool& pool);

/// Objects of manifests. A document that was there before is the same object
/// again, as one of a source is.
class ReadManifests {
 public:
  void Add(const std::string& text, ObjectSnapshot* objects);

 private:
  std::map<std::string, std::unique_ptr<ObjectSnapshot>> documents_;
};

}  // namespace devmgr::model
