// SPDX-License-Identifier: Apache-2.0
//
// From what the single files hold to one snapshot of objects. No disk here.
#pragma once

#include <devmgr/host.h>
#include <devmgr/manifests.h>
#include <devmgr/objects.h>

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace devmgr::source {

/// What one file held when it was good. Immutable and shared, so that the
/// objects of a file that did not change stay the same pointers.
struct ManifestContent {
  using AnyObject = std::variant<
      std::shared_ptr<const Pod>, std::shared_ptr<const ResourceClaim>,
      std::shared_ptr<const ResourceClaimTemplate>,
      std::shared_ptr<const DeviceClass>, std::shared_ptr<const ResourceSlice>,
      std::shared_ptr<const Node>, std::shared_ptr<const DeviceTaintRule>,
      std::shared_ptr<const ResourceClass>,
      std::shared_ptr<const ResourceClassParameters>,
      std::shared_ptr<const ResourceClaimParameters>,
      std::shared_ptr<const ResourceQuota>,
      std::shared_ptr<const MalformedPod>>;
  struct Entry {
    AnyObject object;
    ObjectName name;
    int line = 0;  ///< 0 when not known.
  };

  std::vector<Entry> entries;  ///< In the order of the file.
  std::vector<ManifestProblem> warnings;
};

/// Takes over the objects of a manifest without errors.
std::shared_ptr<const ManifestContent> MakeContent(DecodedManifest manifest);

/// The files of one directory, each with its last good content, and the rules
/// by which they become one snapshot:
///
/// - the first file by name that holds an object counts; a second one is
///   reported and changes nothing else;
/// - a file that turned bad serves its last good content and is reported;
/// - the snapshot is complete when the directory could be listed and every
///   file in it has good content, be it old. As long as it is not complete,
///   files that were deleted serve on what they held.
///
/// Not thread-safe.
class ManifestSet {
 public:
  /// Above these, what is left out is counted.
  static constexpr std::size_t kMaxProblems = 200;
  static constexpr std::size_t kMaxProblemsPerFile = 10;
  /// Deleted files that are served on at most.
  static constexpr std::size_t kMaxDeleted = 1000;

  /// `directory` is what problems name.
  explicit ManifestSet(std::string directory);

  /// The directory was read and holds exactly these files. Files that are new
  /// have no content until `Accept`.
  void SetListed(const std::set<std::string>& names);
  /// The directory could not be read, or not as a whole: `problem` says why.
  /// All files stay as they were.
  void SetUnlisted(std::string problem);
  /// Something that holds for the directory as a whole although it was read,
  /// and that makes the snapshot incomplete; empty when there is nothing.
  void SetDisturbance(std::string problem);
  /// Why the directory does not carry the marker that it was to; empty when
  /// there is nothing. Not a reason for the snapshot to be incomplete.
  void SetMarkerProblem(std::string problem);

  /// The file holds this now. Unknown names are ignored, here and below.
  void Accept(const std::string& name,
              std::shared_ptr<const ManifestContent> content);
  /// The file cannot be used now, for these reasons (one at least).
  /// `unusable`: the objects that it names now.
  void Reject(const std::string& name, std::vector<ManifestProblem> problems,
              std::vector<ObjectProblem> unusable = {});
  /// `Reject` with one reason that has no line.
  void Reject(const std::string& name, std::string reason);
  /// Something worth telling that changes nothing; empty takes it back.
  void SetRemark(const std::string& name, std::string remark);

  /// Puts the snapshot together. When it is complete, deleted files are
  /// forgotten.
  ObjectSnapshot Build();

  /// `directory/name` as it may be shown and sent: control characters and
  /// bytes that are not UTF-8 are escaped.
  std::string PathOf(const std::string& name) const;

 private:
  struct File {
    bool listed = false;
    std::shared_ptr<const ManifestContent> good;
    std::vector<ManifestProblem> faults;  ///< Why `good` is not up to date.
    std::vector<ObjectProblem> unusable;  ///< With faults.
    std::string remark;
    /// Neither accepted nor rejected yet.
    bool unseen() const { return good == nullptr && faults.empty(); }
  };

  bool IsComplete() const;
  /// The objects that a file with faults names, and those that it had.
  static void AddObjectProblems(const File& file,
                                std::vector<ObjectProblem>* problems);
  void ForgetDeleted(std::size_t keep);

  const std::string directory_;
  std::map<std::string, File> files_;
  std::string unlisted_ = "not read yet";
  std::string disturbance_;
  std::string marker_problem_;
};

/// Has the snapshot share with an older one what they have in common, so that
/// what differs is found at once.
void ShareWith(const ObjectSnapshot& before, ObjectSnapshot* snapshot);

/// Whether a reader could tell the two apart.
bool SameSnapshot(const ObjectSnapshot& a, const ObjectSnapshot& b);

/// `text`, or when it holds control characters or bytes that are not UTF-8, a
/// form of it with these escaped.
std::string Printable(const std::string& text);

}  // namespace devmgr::source
