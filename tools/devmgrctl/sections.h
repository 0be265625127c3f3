// SPDX-License-Identifier: Apache-2.0
//
// What several verbs show people in the same way.
#pragma once

#include <devmgr/inspection.h>

#include <map>
#include <string>
#include <vector>

#include "output.h"
#include "session.h"

namespace devmgr::ctl {

// Words for single values; `<unknown>` for what only a running daemon knows.
std::string StateText(const ResourceInfo& resource);
std::string FigureText(const ResourceInfo& resource, std::int64_t figure);
std::string HealthText(const DeviceInfo& device);
std::string NumaText(const DeviceInfo& device);

Tone ToneOf(const SourceInfo& info);
/// Empty for a time that is not known.
std::string AgeText(const Session& session, WallTime time);

/// `get sources`.
absl::Status GetSources(const Session& session, Inspector& inspector);

/// What is wrong with the manifest of an object, if that is known.
void AddManifestProblem(Inspector& inspector, const std::string& kind,
                        const ObjectName& object, Fields* fields);

/// As Inspector::FindPod; the error tells as well of a manifest with this pod
/// that cannot be used.
absl::StatusOr<PodInfo> FindPod(Inspector& inspector, const ObjectName& name);

void AddFields(const Session& session, const ResourceInfo& resource,
               Fields* fields);
void AddFields(const PluginInfo& plugin, Fields* fields);

/// A table with a blank line above it, or nothing at all.
void PrintSection(const Session& session, Table table);

Table DriverTable(const Session& session, const ClaimInfo& claim);

/// By CDI name, the devices of drivers that stand behind it and that the pod
/// holds, as `pool/device`, of names with more than one.
using SharedCdiNames = std::map<std::string, std::vector<std::string>>;
SharedCdiNames SharedCdiNamesOf(Inspector& inspector, const ObjectName& pod);

/// What is put into containers; one that gets nothing has a row, too.
Table InjectedTable(const Session& session, const PodDevices& devices,
                    const SharedCdiNames& shared = {});

/// How the devices of plugins fare that the pod holds.
Table AllocatedTable(const Session& session, const PodInfo& pod);

/// The events of one object, oldest first, as far as they are known. A state
/// directory has none; that is no reason to fail.
std::vector<EventInfo> EventsOf(const Session& session, Inspector& inspector,
                                const std::string& kind,
                                const ObjectName& object);
void PrintEvents(const Session& session, const std::vector<EventInfo>& events);

}  // namespace devmgr::ctl
