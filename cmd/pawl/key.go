package main

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"pawl/lockrepo/keys"
)

func (c *cli) key() *cobra.Command {
	cmd := &cobra.Command{
		Use: "key", Short: "Make, list and revoke the keys of the API", Args: noCommand, RunE: help,
		Long: `Make, list and revoke the keys of the API.

Roles grow: a reader may look, a worker may also acquire, renew and release, an operator may also use the
page's actions. A key with a prefix reaches only locks whose names begin so. Once a key has been made, pawl
serve answers nobody without one, for ever: revoking the last key doesn't open it again.`,
	}
	cmd.AddCommand(c.keyCreate(), c.keyList(), c.keyRevoke())
	return cmd
}

// withKeys runs fn on the keys of the database.
func (c *cli) withKeys(ctx context.Context, fn func(*database, *keys.Store) error) error {
	db, err := c.openMigrated(ctx, 2)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	return fn(db, keys.New(db.pool))
}

func (c *cli) keyCreate() *cobra.Command {
	k := keys.Key{CreatedBy: actor()}
	var expires expiry
	cmd := &cobra.Command{
		Use: "create --name NAME --role ROLE", Short: "Make a key and print it, once", Args: exactly(),
		Long: `Make a key and print it on standard output. It is shown this once: pawl keeps only a hash of its secret.

What a client sends is: Authorization: Bearer KEY`,
		Example: `  pawl key create --name billing --role worker --prefix payments/ --expires 90d >billing.key
  pawl key create --name dashboard --role reader`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkKey(k); err != nil {
				return err
			}
			return c.withKeys(cmd.Context(), func(db *database, store *keys.Store) (err error) {
				if k.ExpiresAt, err = expires.at(cmd.Context(), db); err != nil {
					return err
				}
				bearer, made, err := store.Create(cmd.Context(), k)
				switch {
				case errors.Is(err, keys.ErrNameTaken):
					return conflict("--name is %q, which a key has already, perhaps a revoked one: choose another name; see: pawl key ls", k.Name)
				case err != nil:
					return err
				}
				return c.sayMade(bearer, made)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&k.Name, "name", "", "who will use it, such as billing; no other key has it")
	f.StringVar(&k.Role, "role", "", "reader, worker or operator")
	f.StringVar(&k.Prefix, "prefix", "", "only locks whose name begins so (default: all)")
	f.Var(&expires, "expires", "after which time, such as 90d or 12h, or when, such as 2027-01-31 (default: never)")
	f.BoolVar(&k.Approver, "approver", false, "it may also approve what others ask for")
	return cmd
}

func checkKey(k keys.Key) error {
	switch {
	case blank(k.Name):
		return usage("--name is missing: name who will use the key, such as billing")
	case len(k.Name) > 255 || !printable(k.Name):
		return usage("--name is %q: use at most 255 bytes that can be printed", k.Name)
	case k.Role == "":
		return usage("--role is missing: use reader, worker or operator")
	case k.Role != keys.Reader && k.Role != keys.Worker && k.Role != keys.Operator:
		return usage("--role is %q: use reader, worker or operator", k.Role)
	case len(k.Prefix) > 255 || !printable(k.Prefix):
		return usage("--prefix is %q: use the beginning of a lock's name, such as payments/", k.Prefix)
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// madeKey is a new key as JSON: what a client sends, and what is known of it.
type madeKey struct {
	Bearer string `json:"bearer"`
	keys.Key
}

func (c *cli) sayMade(bearer string, k keys.Key) error {
	until := "for ever"
	if k.ExpiresAt != nil {
		until = "until " + at(k.ExpiresAt)
	}
	c.p.note("%s may act as %s on %s %s. The key is shown only now: keep it where only its user can read it.",
		clean(k.Name), k.Role, reach(k), until)
	if c.p.json {
		return c.p.value(madeKey{bearer, k})
	}
	return c.p.raw(bearer + "\n")
}

// reach is which locks a key is for.
func reach(k keys.Key) string {
	if k.Prefix == "" {
		return "all locks"
	}
	return clean(k.Prefix) + "*"
}

func (c *cli) keyList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the keys, the revoked and expired ones too", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withKeys(cmd.Context(), func(db *database, store *keys.Store) error {
				all, err := store.List(cmd.Context())
				if err != nil {
					return err
				}
				var now time.Time
				if err := db.pool.QueryRow(cmd.Context(), nowSQL, 0).Scan(&now); err != nil {
					return err
				}
				heads := []string{"NAME", "ID", "STATE", "ROLE", "LOCKS", "APPROVER", "CREATED", "BY", "EXPIRES", "LAST USED"}
				return list(c.p, all, "no keys; make one with: pawl key create", heads, func(k keys.Key) []string {
					return []string{
						k.Name, k.ID, keyState(k, now), k.Role, reach(k), map[bool]string{true: "yes", false: "no"}[k.Approver],
						at(&k.CreatedAt), or(k.CreatedBy), at(k.ExpiresAt), at(k.LastUsedAt),
					}
				})
			})
		},
	}
}

func keyState(k keys.Key, now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.ExpiresAt != nil && !k.ExpiresAt.After(now):
		return "expired"
	}
	return "valid"
}

func (c *cli) keyRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME|ID", Short: "Revoke a key: within a second nobody answers it any more", Args: exactly("NAME|ID"),
		Long: `Revoke a key. Every pawl serve refuses it within a second. Leases that it holds run out by themselves; to
have one taken at once, see: pawl lock release.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withKeys(cmd.Context(), func(_ *database, store *keys.Store) error {
				k, err := store.Revoke(cmd.Context(), args[0], actor())
				switch {
				case errors.Is(err, keys.ErrNotFound):
					return usage("there is no key %q; list them with: pawl key ls", args[0])
				case err != nil:
					return err
				}
				if c.p.json {
					return c.p.value(k)
				}
				c.p.line("%s (%s) is revoked: within a second it is refused everywhere", clean(k.Name), k.ID)
				return nil
			})
		},
	}
}
