package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pawl/lockrepo/approvals"
	"pawl/lockrepo/keys"
)

func (c *cli) approval() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approval", Short: "See and decide what others have asked for", Args: noCommand, RunE: help,
		Long: `See and decide what others have asked for: leases that are to be released by force.

Who approves is another person than who has asked. A person is a key (--key-file), or else this machine's
user and host name, who has the database's password and so may approve.`,
	}
	cmd.AddCommand(c.approvalList(), c.approvalShow(), c.approvalApprove(), c.approvalDecline(), c.approvalSingle())
	return cmd
}

func personFlag(cmd *cobra.Command, keyFile *string) {
	f := cmd.Flags()
	f.StringVar(keyFile, "key-file", "", "act as the key in this file (default: as this machine's user)")
	variable(f, "key-file", "PAWL_KEY_FILE")
}

// withApprovals runs fn on the requests of the database, with who acts.
func (c *cli) withApprovals(ctx context.Context, keyFile string, fn func(*approvals.Store, approvals.Person) error) error {
	db, err := c.openMigrated(ctx, 2)
	if err != nil {
		return err
	}
	defer db.pool.Close()
	by := approvals.Person{ID: actor(), Name: actor(), Approver: true}
	if keyFile != "" {
		if by, err = keyPerson(ctx, keys.New(db.pool), keyFile); err != nil {
			return err
		}
	}
	return fn(approvals.New(db.pool, nil), by)
}

func keyPerson(ctx context.Context, store *keys.Store, file string) (approvals.Person, error) {
	bearer, err := os.ReadFile(file)
	if err != nil {
		if path := (*os.PathError)(nil); errors.As(err, &path) {
			err = path.Err
		}
		return approvals.Person{}, usage("--key-file is %q: %v", file, err)
	}
	k, err := store.Check(ctx, strings.TrimSpace(string(bearer)))
	switch {
	case errors.Is(err, keys.ErrUnknownKey):
		return approvals.Person{}, usage("--key-file is %q: that key is unknown, revoked or expired; see: pawl key ls", file)
	case err != nil:
		return approvals.Person{}, err
	}
	return approvals.Person{ID: k.ID, Name: k.Name, Approver: k.Approver}, nil
}

// requestID reads the number of a request.
func requestID(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 {
		return 0, usage("ID is %q: give the number of a request; list them with: pawl approval ls", s)
	}
	return id, nil
}

func (c *cli) approvalList() *cobra.Command {
	f := approvals.Filter{}
	cmd := &cobra.Command{
		Use: "ls", Short: "List what was asked for, the newest first", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch f.State {
			case "", approvals.Pending, approvals.Approved, approvals.Declined, approvals.Expired, approvals.Stale:
			default:
				return usage("--state is %q: use pending, approved, declined, expired or stale", f.State)
			}
			return c.withApprovals(cmd.Context(), "", func(store *approvals.Store, _ approvals.Person) error {
				all, err := store.List(cmd.Context(), f)
				if err != nil {
					return err
				}
				heads := []string{"ID", "STATE", "LOCK", "TOKEN", "ASKED BY", "ASKED AT", "UNTIL", "DECIDED BY", "REASON"}
				return list(c.p, all, "no requests", heads, func(q approvals.Request) []string {
					return []string{
						fmt.Sprint(q.ID), q.State, q.Lock, token(q.Token), q.RequestedBy, at(&q.RequestedAt), at(&q.ExpiresAt), or(q.DecidedBy), q.Reason,
					}
				})
			})
		},
	}
	cmd.Flags().StringVar(&f.State, "state", "", "only these: pending, approved, declined, expired or stale")
	limitFlag(cmd, &f.Limit)
	return cmd
}

func (c *cli) approvalShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one request", Args: exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := requestID(args[0])
			if err != nil {
				return err
			}
			return c.withApprovals(cmd.Context(), "", func(store *approvals.Store, _ approvals.Person) error {
				q, err := store.Get(cmd.Context(), id)
				if err != nil {
					return err
				}
				if c.p.json {
					return c.p.value(q)
				}
				yes := map[bool]string{true: "yes", false: "no"}
				c.p.fields([][2]string{
					{"request", fmt.Sprint(q.ID)},
					{"state", q.State},
					{"action", "release by force"},
					{"lock", q.Lock},
					{"token", token(q.Token)},
					{"held now by", or(q.Holder)},
					{"reason", q.Reason},
					{"kill", yes[q.Kill]},
					{"asked by", q.RequestedBy + " (" + q.RequestedByID + ")"},
					{"asked at", at(&q.RequestedAt)},
					{"until", at(&q.ExpiresAt)},
					{"decided by", or(q.DecidedBy)},
					{"decided at", at(q.DecidedAt)},
					{"note", or(q.Note)},
					{"one person", yes[q.Self]},
				})
				return nil
			})
		},
	}
}
