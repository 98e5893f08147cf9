package jobfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pawl/jobs"
	"pawl/jobs/kinds"
)

// The longest locks that leave room for # and a shard's key, and, with overlap allow, for the period's.
const (
	longestLock      = 190
	longestLockAllow = 159
)

// checkShards checks what says into what the job's periods are parted, and what reduces them.
func (r *reader) checkShards(f *File, job *Job, path string) {
	if job.Reduce != nil {
		r.checkReduce(job, path+".reduce")
	}
	if job.Shards == nil {
		return
	}
	r.checkCut(f, job.Shards, path+".shards")
	if job.Kind == "reconcile" {
		r.say(Error, r.where(path+".shards").key, path+".shards", "a job of kind reconcile compares everything at once. Remove it.")
	}
	most := longestLock
	if job.Overlap == "allow" {
		most = longestLockAllow
	}
	if len(job.Lock) > most {
		r.bad(path+".lock", "has %d bytes, and # and the shard's key are added. Write at most %d.", len(job.Lock), most)
	}
	if (job.Kind == "sql" || job.Kind == "http") && !job.tellsShards() {
		r.warn(Warning, path+".shards", "nothing of the job has {{shard.key}}, {{shard.index}} or {{shard.count}}, so each shard would do the same. Use one of them.")
	}
}

// checkCut checks the keys or the statement that lists them.
func (r *reader) checkCut(f *File, s *Shards, path string) {
	switch {
	case s.form == list && len(s.Keys) == 0:
		r.bad(path, "is empty. Write the keys, as in [north, south], or a number.")
	case s.form == list:
		r.checkShardKeys(s.Keys, path)
	case s.form == mapping:
		r.checkText(path, s.Statement, s.File, &s.Text)
		r.checkDatabase(f, s.Database, path+".database")
		if s.Text != "" {
			_, err := kinds.ShardKeys{Text: s.Text, Args: s.Args}.Func()
			r.kindError(path, err)
		}
	}
}

func (r *reader) checkShardKeys(keys []string, path string) {
	switch i, fix := jobs.BadShardKey(keys); {
	case i < 0 || keys[i] == "": // that was said when it was read
	case i >= mostShards:
		r.bad(path, "has %d keys. List at most %d.", len(keys), mostShards)
	default:
		r.bad(fmt.Sprintf("%s[%d]", path, i), "%.80q can't be a shard's key: %s.", keys[i], fix)
	}
}

func (r *reader) checkReduce(job *Job, path string) {
	if job.Shards == nil && !r.shards[jobOf(path)] {
		r.say(Error, r.where(path).key, path, "is for jobs with shards. Write shards: 16, or shards: [north, south], or remove it.")
	}
	r.checkText(path, job.Reduce.Statement, job.Reduce.File, &job.Reduce.Text)
	if job.Reduce.Text != "" {
		_, err := job.Reduce.load()
		r.kindError(path, err)
	}
}

// kindError reports a field of a block that can't be used.
func (r *reader) kindError(path string, err error) {
	var kind *kinds.ConfigError
	if !errors.As(err, &kind) {
		return
	}
	at := path + ".statement"
	switch {
	case kind.Field != "Text":
		r.bad(path+"."+strings.ToLower(kind.Field), "has %v: %s.", kind.Value, kind.Fix)
		return
	case !r.written(at):
		at = path + ".file"
	}
	r.bad(at, "%v: %s.", shown(kind.Value), kind.Fix)
}

// tellsShards reports whether a template of a sql or http job tells its shards apart.
func (j *Job) tellsShards() bool {
	switch {
	case j.SQL != nil:
		return tellsShards(j.SQL.Args)
	case j.HTTP != nil:
		return tellsShards(j.HTTP.URL) || tellsShards(j.HTTP.Body.Text) || tellsShards(j.HTTP.Body.JSON) ||
			slices.ContainsFunc(keys(j.HTTP.Headers), func(name string) bool { return tellsShards(j.HTTP.Headers[name]) })
	}
	return true
}

func tellsShards(v any) bool {
	switch v := v.(type) {
	case Text:
		return slices.ContainsFunc(v.Values(), func(name string) bool { return slices.Contains(shardValues(), name) })
	case []any:
		return slices.ContainsFunc(v, tellsShards)
	case map[string]any:
		return slices.ContainsFunc(keys(v), func(name string) bool { return tellsShards(v[name]) })
	}
	return false
}
