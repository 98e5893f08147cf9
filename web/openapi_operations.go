package web

import (
	"net/http"
	"slices"
)

// operation is what the description says of a route beyond what the table of routes says.
type operation struct {
	route   apiRoute
	id      string   // as generated clients call it
	summary string   // a line
	about   string   // what one must know before using it
	params  []string // of components/parameters, those in the path first
	body    string   // of components/schemas; empty: none
	bare    bool     // the body may be left out
	answer  string   // of components/schemas; empty: no content, or text
	media   string   // of an answer that is no JSON
	headers []string // of components/headers, on success
}

// operations are the table's routes in its order, each with its description.
func operations() []operation {
	said, all := described(), make([]operation, 0, len(apiRoutes()))
	for _, r := range apiRoutes() {
		op := said[r.Method+" "+r.Pattern]
		op.route = r
		all = append(all, op)
	}
	return all
}

// described says of each route what its table doesn't. A test holds the two together.
func described() map[string]operation {
	const plain = "text/plain"
	return map[string]operation{
		"GET /locks": {
			id: "listLocks", summary: "List locks", answer: "Locks", params: []string{"prefix", "state", "limit", "cursor"},
			about: "In the order of their names, byte by byte. Only names under the key's prefix are listed; held means by a live lease, " +
				"stale that the lease ended without a release, free that it was released.",
		},
		"GET /locks/{resource}": {
			id: "getLock", summary: "Read who holds a lock", answer: "One", params: []string{"resource"}, headers: []string{"ETag"},
			about: "A lock that was released or whose lease has expired is not found.",
		},
		"POST /locks/{resource}": {
			id: "acquireLock", summary: "Acquire a lock", body: "Acquire", answer: "Acquired",
			params: []string{"resource", "Idempotency-Key"}, headers: []string{"Fencing-Token", "Retry-After"},
			about: "Never waits. When another holds the lock the answer is 200 with acquired false: ask again after Retry-After. The holder " +
				"itself, by the same owner and the same key, gets a larger token and fences its former self. Send an Idempotency-Key, " +
				"so that a retry after a lost answer gets the same grant.",
		},
		"DELETE /locks/{resource}": {
			id: "releaseLock", summary: "Release a lock", body: "Release", bare: true, params: []string{"resource", "owner", "If-Match"},
			about: "The owner comes in the body or as ?owner=. Not found means that nobody holds it: take it as done. Without If-Match " +
				"the owner alone is trusted: two processes that share one can end each other's lease.",
		},
		"POST /locks/{resource}/renew": {
			id: "renewLock", summary: "Renew a lease", body: "Acquire", answer: "One",
			params: []string{"resource", "If-Match"}, headers: []string{"Fencing-Token"},
			about: "The token and acquired_at stay, expires_at moves to ttl_seconds from now, or to the longest time that the server " +
				"lets anybody hold a lock: believe the answer's ttl_seconds, which may be less than you asked for. A lease that has ended is never revived: " +
				"lease-lost tells a former holder to stop its work and acquire again, owner-mismatch tells a stranger.",
		},
		"GET /locks/{resource}/history": {
			id: "listTenures", summary: "Read a lock's ended leases", answer: "Tenures", params: []string{"resource", "limit", "cursor"},
			about: "The newest first. They are kept for 400 days.",
		},
		"POST /fences/{target}/check": {
			id: "checkFence", summary: "Ask whether a token is current for a target", body: "Check", answer: "Checked", params: []string{"target"},
			about: "Advice only: the answer is old when it arrives. A store that can compare tokens must compare by itself, in the " +
				"transaction that writes.",
		},
		"GET /artifacts/{name}": {
			id: "getArtifact", summary: "Read a published file", media: "application/octet-stream", params: []string{"name", "If-None-Match"},
			headers: []string{"File-ETag", "Fencing-Token", "Artifact-Version"},
			about: "The version that the pointer names, as a whole: a connection that ends before Content-Length is reached has not given it. " +
				"ETag is the SHA-256 of its bytes. It is not found for a key whose prefix doesn't reach the lock that it is published under.",
		},
		"GET /api/overview": {
			id: "getOverview", summary: "Read the page's facts", answer: "Overview",
			about: "All parts or none; at most a hundred of each, read at most once a second however many ask.",
		},
		"GET /metrics":      {id: "getMetrics", summary: "Read metrics", media: plain, about: "In the format of Prometheus, where the server has metrics."},
		"GET /healthz":      {id: "getHealth", summary: "Ask whether the process answers", media: plain, about: "Whatever the database does."},
		"GET /readyz":       {id: "getReadiness", summary: "Ask whether the process takes work", media: plain, about: "The refusal says why not."},
		"GET /openapi.json": {id: "getDescription", summary: "Read this description", answer: "Description", about: "OpenAPI 3.1."},
		"GET /docs":         {id: "getReference", summary: "Read this description as a page", media: "text/html", about: "HTML, without scripts."},
		"GET /problems/{slug}": {
			id: "getProblem", summary: "Read what a problem means", media: plain, params: []string{"slug"},
			about: "Where the type of a problem document leads.",
		},
	}
}

// problems are the kinds that the operation may answer with this status. Those that name a state of a lock belong to
// the operations that meet it.
func (o operation) problems(status int) []kind {
	only := map[string][]string{
		ownerMismatch.slug: {"renewLock", "releaseLock"},
		leaseLost.slug:     {"renewLock"},
		staleToken.slug:    {"checkFence"},
		keyReused.slug:     {"acquireLock"},
	}
	var found []kind
	for _, k := range kinds() {
		ids, special := only[k.slug]
		if k.status == status && (!special || slices.Contains(ids, o.id)) {
			found = append(found, k)
		}
	}
	return found
}

// succeeds tells a status that is no refusal.
func succeeds(status int) bool { return status < http.StatusBadRequest }
