package migrations_test

import (
	"errors"
	"strings"
	"testing"

	"pawl/internal/pgtest"
	"pawl/migrations"
)

func TestAServerThatIsTooOldIsRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.Open(t, pgtest.TooOld(t))
	applied, err := migrations.Up(t.Context(), pool)
	for _, err := range []error{err, migrations.Check(t.Context(), pool, migrations.Binary)} {
		var old *migrations.OldServerError
		if !errors.As(err, &old) || !strings.HasPrefix(old.Version, "13.") || !strings.HasSuffix(err.Error(), ": pawl needs 14 or newer") {
			t.Errorf("%v", err)
		}
	}
	if len(applied) != 0 {
		t.Errorf("applied %v", applied)
	}
}

func TestOnlyVersionsThatAreKnownToBeTooOldAreRefused(t *testing.T) {
	t.Parallel()
	for version, refused := range map[string]bool{
		"9.6.24": true, "13.23": true, "13.22 (Debian 13.22-1)": true,
		"14.0": false, "15.18 (Debian 15.18-0+deb12u1)": false, "18.4": false, "19beta1": false, "20devel": false, "": false,
	} {
		if err := migrations.CheckServer(version); (err != nil) != refused {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// The statements for a database administrator say it by themselves.
func TestThePrintedStatementsRefuseAnOldServer(t *testing.T) {
	t.Parallel()
	var ddl strings.Builder
	if err := migrations.SQL(&ddl); err != nil {
		t.Fatal(err)
	}
	const bound = "server_version_num')::int < 140000 then"
	if !strings.Contains(ddl.String(), bound) {
		t.Fatal("no bound is printed")
	}
	pool := empty(t)
	_, err := pool.Exec(t.Context(), strings.Replace(ddl.String(), bound, strings.ReplaceAll(bound, "140000", "990000"), 1))
	if err == nil || !strings.Contains(err.Error(), ": pawl needs 14 or newer") {
		t.Errorf("%v", err)
	}
	if value[bool](t, pool, `select to_regnamespace('pawl') is not null`) {
		t.Error("the schema was made")
	}
}
